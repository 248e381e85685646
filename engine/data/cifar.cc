#include "data/cifar.h"

#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "caffe.pb.h"
#include "data/record_writer.h"

namespace crema::data {
namespace {

constexpr size_t kSide = 32, kPixels = 3 * kSide * kSide, kRecord = 1 + kPixels;

int64_t convert(const std::vector<std::string>& files, const std::string& database, const std::string& backend) {
  const auto writer = makeRecordWriter(parseBackend(backend), database);
  caffe::Datum datum;
  datum.set_channels(3), datum.set_height(kSide), datum.set_width(kSide);
  for (const auto& file : files) {
    const std::string bytes = readFile(file);
    if (bytes.empty() || bytes.size() % kRecord)
      badData("{} has {} bytes, no multiple of a record's {}; take CIFAR-10's binary version anew, and gunzip it", file,
              bytes.size(), kRecord);
    for (size_t at = 0; at < bytes.size(); at += kRecord) {
      const auto label = static_cast<unsigned char>(bytes[at]);
      if (label > 9)
        badData("record {} of {} has label {}, CIFAR-10 has 0 to 9; is it CIFAR-100, or another file?", at / kRecord,
                file, label);
      datum.set_label(label);
      datum.set_data(bytes.data() + at + 1, kPixels);
      writer->put(fmt::format("{:05d}", writer->written()), datum.SerializeAsString());
    }
  }
  writer->finish();
  return writer->written();
}

}  // namespace

CifarCounts convertCifar(const std::string& input, const std::string& output, const std::string& backend) {
  std::vector<std::string> train;
  for (int i = 1; i <= 5; ++i) train.push_back(joinPath(input, fmt::format("data_batch_{}.bin", i)));
  const std::string test = joinPath(input, "test_batch.bin");
  for (auto files = train; const auto& file : (files.push_back(test), files))
    if (!fileExists(file))
      ioError("there is no {}; the folder needs data_batch_1.bin to data_batch_5.bin and test_batch.bin", file);
  return {convert(train, joinPath(output, "cifar10_train_" + backend), backend),
          convert({test}, joinPath(output, "cifar10_test_" + backend), backend)};
}

}  // namespace crema::data
