// Small generated data sets, so that tests need no download: two-dimensional blobs of pixels that a net can learn.
#pragma once
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "caffe.pb.h"
#include "data/lmdb_writer.h"
#include "data/source.h"

namespace crema::test {

// Pixels first, first + 1, ... (modulo 256).
inline caffe::Datum datum(int c, int h, int w, int label, int first = 0) {
  caffe::Datum d;
  d.set_channels(c), d.set_height(h), d.set_width(w), d.set_label(label);
  std::string bytes(static_cast<size_t>(c * h * w), '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>((static_cast<int>(i) + first) % 256);
  d.set_data(bytes);
  return d;
}

// All records of an LMDB.
inline std::vector<caffe::Datum> datums(const std::string& path) {
  const auto source = data::openSource(caffe::DataParameter::LMDB, path);
  std::vector<caffe::Datum> all(static_cast<size_t>(source->size()));
  for (size_t i = 0; i < all.size(); ++i) {
    const data::Record r = source->read(static_cast<int64_t>(i));
    if (!all[i].ParseFromArray(r.value.data(), static_cast<int>(r.value.size()))) throw Error(ErrorKind::kData, path);
  }
  return all;
}

// The records of files in CIFAR-10's binary layout, a label and 3 x 32 x 32 bytes each, as an LMDB.
inline void writeCifar(const std::string& path, const std::vector<std::string>& files) {
  data::LmdbWriter writer(path);
  int i = 0;
  for (const auto& file : files) {
    const std::string all = readFile(file);
    for (size_t at = 0; at + 3073 <= all.size(); at += 3073) {
      caffe::Datum d;
      d.set_channels(3), d.set_height(32), d.set_width(32), d.set_label(all[at]);
      d.set_data(all.substr(at + 1, 3072));
      writer.put(fmt::format("{:05d}", i++), d.SerializeAsString());
    }
  }
  writer.finish();
}

// `count` records of 1 x 8 x 8 pixels in `classes` classes: class k is bright in its own pixels, with noise.
inline void writeLearnableRecords(const std::string& path, int count, int classes = 4) {
  data::LmdbWriter writer(path);
  const RandomStream r{RandomKey{}};
  for (int i = 0; i < count; ++i) {
    const auto label = static_cast<int>(r.below(static_cast<uint64_t>(i), static_cast<uint64_t>(classes)));
    caffe::Datum d;
    d.set_channels(1), d.set_height(8), d.set_width(8), d.set_label(label);
    std::string pixels(64, '\0');
    for (int p = 0; p < 64; ++p) {
      const auto noise = static_cast<int>(r.below(static_cast<uint64_t>(1000000 + i * 64 + p), 100));
      pixels[static_cast<size_t>(p)] = static_cast<char>(noise + (p % classes == label ? 120 : 0));
    }
    d.set_data(pixels);
    writer.put(fmt::format("{:08d}", i), d.SerializeAsString());
  }
  writer.finish();
}

// A small convolutional net over such records, batch B while training, 10 while testing.
inline std::string learnableNet(const std::string& train, const std::string& test, int batch,
                                const std::string& extra = "") {
  const auto data = [&](const char* phase, const std::string& source, int size) {
    return fmt::format(
        "layer {{ name: 'data' type: 'Data' top: 'data' top: 'label' include {{ phase: {} }} transform_param {{ scale: "
        "0.0078125 }} "
        "data_param {{ source: '{}' batch_size: {} backend: LMDB }} }}\n",
        phase, source, size);
  };
  return "name: 'small'\n" + data("TRAIN", train, batch) + data("TEST", test, 10) +
         "layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv' param { lr_mult: 1 } param { lr_mult: 2 "
         "}\n"
         "  convolution_param { num_output: 6 kernel_size: 3 weight_filler { type: 'xavier' } } }\n"
         "layer { name: 'pool' type: 'Pooling' bottom: 'conv' top: 'pool' pooling_param { kernel_size: 2 stride: 2 } "
         "}\n"
         "layer { name: 'relu' type: 'ReLU' bottom: 'pool' top: 'pool' }\n" +
         extra +
         "layer { name: 'ip' type: 'InnerProduct' bottom: 'pool' top: 'ip' inner_product_param { num_output: 4 "
         "weight_filler { type: 'xavier' } } }\n"
         "layer { name: 'accuracy' type: 'Accuracy' bottom: 'ip' bottom: 'label' top: 'accuracy' include { phase: TEST "
         "} }\n"
         "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n";
}

}  // namespace crema::test
