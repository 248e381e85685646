// crema extract_features: blobs of a net as databases, one Datum of floats an item.
#include <charconv>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/temporary.h"
#include "base/text.h"
#include "cli/command.h"
#include "data/record_writer.h"
#include "model/upgrade.h"
#include "net/net.h"
#include "net/scoring_plan.h"

namespace crema::cli {
namespace {

struct Feature {
  std::string blob, path;
  std::unique_ptr<data::RecordWriter> database;
  int64_t items = 0;
};

int batchCount(const std::string& text) {
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 1)
    invalid("num_mini_batches must be a positive number, not '{}'", text);
  return n;
}

std::vector<Feature> open(const net::Net& net, const std::string& blobs, const std::string& datasets,
                          const std::string& kind) {
  const auto names = splitList(blobs), paths = splitList(datasets);
  if (names.size() != paths.size() || names.empty())
    invalid("the number of blob names and dataset names must be equal ({} and {})", names.size(), paths.size());
  if (std::set<std::string>(paths.begin(), paths.end()).size() != paths.size())
    invalid("{} names a dataset twice", datasets);
  const auto backend = data::parseBackend(kind);
  std::vector<Feature> all;
  for (size_t i = 0; i < names.size(); ++i) {
    if (net.blob(names[i]).shape().axes() > 4)
      invalid("blob '{}' is {}; a Datum holds at most 4 axes", names[i], net.blob(names[i]).shape().brief());
    if (fileExists(paths[i])) ioError("there is something at {} already; remove it or choose another name", paths[i]);
  }
  for (size_t i = 0; i < names.size(); ++i) {
    LOG_INFO("Opening dataset {}", paths[i]);
    all.push_back({names[i], paths[i], data::makeRecordWriter(backend, paths[i])});
  }
  return all;
}

// The items of a batch: axis 0 of the blob; channels, height and width are its next axes, 1 where missing.
void put(const Blob& blob, Feature* f) {
  const Shape& s = blob.shape();
  const int items = s.legacy(0), width = items ? s.count() / items : 0;
  const float* values = blob.data<float>();
  caffe::Datum d;
  d.set_channels(s.legacy(1)), d.set_height(s.legacy(2)), d.set_width(s.legacy(3));
  for (int n = 0; n < items; ++n, values += width) {
    d.mutable_float_data()->Assign(values, values + width);
    f->database->put(fmt::format("{:010d}", f->items++), d.SerializeAsString());
    if (f->items % 1000 == 0) LOG_INFO("Extracted features of {} query images for feature blob {}", f->items, f->blob);
  }
}

int extract(const std::vector<std::string>& a) {
  if (a.size() > 6 && a[6] == "GPU") refuseGpu(a.size() > 7 ? a[7] : "0");
  LOG_INFO("Using CPU");
  const int batches = batchCount(a[4]);
  kernels::Context kernels(kernels::bestIsa(), 0);
  net::NetOptions o;
  o.kernels = &kernels;
  o.needsBackward = false;
  o.log = true;
  o.data.folder = parentDirectory(a[1]);
  caffe::NetState state;
  state.set_phase(caffe::TEST);
  net::Net net(model::readNet(a[1]), state, o, a[1]);
  net::copyTrainedFiles(net, a[0]);
  net::warnOfUntrained(net, a[0]);
  auto features = open(net, a[2], a[3], a[5]);
  LOG_INFO("Extracting Features");
  const kernels::FrozenWeights frozen(kernels);
  std::set<std::string> blobs;
  for (const auto& f : features) blobs.insert(f.blob);
  net::ScoringPlan plan(net, blobs);
  for (int i = 0; i < batches; ++i) {
    net.setStep(i, 0);
    plan.forward();
    for (auto& f : features) put(net.blob(f.blob), &f);
  }
  for (auto& f : features) {
    f.database->finish();
    LOG_INFO("Extracted features of {} query images for feature blob {}", f.items, f.blob);
  }
  LOG_INFO("Successfully extracted the features!");
  return 0;
}

}  // namespace

void addExtractFeatures(CLI::App& program, Run& chosen) {
  addCommand(
      program, "extract_features",
      "blobs of a net as databases: WEIGHTS PROTO BLOB[,BLOB..] DATASET[,DATASET..] NUM_BATCHES DB_TYPE [CPU]",
      [](CLI::App& app) -> Run {
        auto words = std::make_shared<std::vector<std::string>>();
        app.add_option(
            "words", *words,
            "the .caffemodel; the net, with a data layer in phase TEST; blobs; a database for each; how many "
            "batches; lmdb or leveldb; CPU");
        return [words] {
          clearOnSignals();
          if (words->size() >= 6) return extract(*words);
          LOG_ERROR(
              "This program takes in a trained network and an input data layer, and then extract features of the input "
              "data produced by the net.\nUsage: extract_features  pretrained_net_param  feature_extraction_proto_file "
              " "
              "extract_feature_blob_name1[,name2,...]  save_feature_dataset_name1[,name2,...]  num_mini_batches  "
              "db_type  [CPU/GPU] [DEVICE_ID=0]");
          return 1;
        };
      },
      chosen);
}

}  // namespace crema::cli
