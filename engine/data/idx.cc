#include "data/idx.h"

#include "base/error.h"
#include "base/file.h"
#include "caffe.pb.h"
#include "data/record_writer.h"

namespace crema::data {
namespace {

uint32_t word(const std::string& bytes, size_t i) {
  const auto at = [&](size_t k) { return static_cast<uint32_t>(static_cast<unsigned char>(bytes[4 * i + k])); };
  return at(0) << 24 | at(1) << 16 | at(2) << 8 | at(3);
}

std::string readChecked(const std::string& path, uint32_t magic, size_t header, const char* what) {
  std::string bytes = readFile(path);
  if (bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b')
    badData("{} is compressed; run gunzip on it first", path);
  if (bytes.size() < header || word(bytes, 0) != magic)
    badData("{} is no idx file of {} (it should start with the number {}); are the two files in the right order?", path,
            what, magic);
  return bytes;
}

}  // namespace

IdxImages readIdxImages(const std::string& path) {
  std::string bytes = readChecked(path, 2051, 16, "images");
  const uint64_t count = word(bytes, 1), rows = word(bytes, 2), columns = word(bytes, 3);
  if (rows == 0 || columns == 0 || rows > 65535 || columns > 65535 || bytes.size() != 16 + count * rows * columns)
    badData("{} promises {} images of {}x{} but has {} bytes; take it anew", path, count, rows, columns, bytes.size());
  return {static_cast<int>(count), static_cast<int>(rows), static_cast<int>(columns), bytes.substr(16)};
}

std::string readIdxLabels(const std::string& path) {
  const std::string bytes = readChecked(path, 2049, 8, "labels");
  if (bytes.size() != 8 + static_cast<size_t>(word(bytes, 1)))
    badData("{} promises {} labels but has {} bytes; take it anew", path, word(bytes, 1), bytes.size());
  return bytes.substr(8);
}

int64_t convertMnist(const std::string& imagesPath, const std::string& labelsPath, const std::string& database,
                     const std::string& backend) {
  const IdxImages images = readIdxImages(imagesPath);
  const std::string labels = readIdxLabels(labelsPath);
  if (static_cast<size_t>(images.count) != labels.size())
    badData("{} has {} images and {} has {} labels; they belong to different sets", imagesPath, images.count,
            labelsPath, labels.size());
  const auto writer = makeRecordWriter(parseBackend(backend), database);
  caffe::Datum datum;
  datum.set_channels(1), datum.set_height(images.rows), datum.set_width(images.columns);
  const auto size = static_cast<size_t>(images.rows) * static_cast<size_t>(images.columns);
  for (int i = 0; i < images.count; ++i) {
    datum.set_data(images.pixels.substr(static_cast<size_t>(i) * size, size));
    datum.set_label(static_cast<unsigned char>(labels[static_cast<size_t>(i)]));
    writer->put(fmt::format("{:08d}", i), datum.SerializeAsString());
  }
  writer->finish();
  return writer->written();
}

}  // namespace crema::data
