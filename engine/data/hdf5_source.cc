#include "data/hdf5_source.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/mutex.h"
#include "model/hdf5_file.h"
#include "model/hdf5_rows.h"

namespace crema::data {
namespace {

std::vector<std::string> filesOf(const std::string& list) {
  if (model::isHdf5(list)) invalid("{} is an HDF5 file; `source` names a text file that lists such files", list);
  std::istringstream in(readFile(list));
  std::vector<std::string> files;
  for (std::string path; in >> path;) files.push_back(resolvePath(path, parentDirectory(list)));
  if (files.empty()) badData("{} lists no files; write the path of an HDF5 file on each line", list);
  return files;
}

class Hdf5Source : public RecordSource {
 public:
  Hdf5Source(const std::string& list, const std::vector<std::string>& datasets, bool oneByOne)
      : list_(list), files_(filesOf(list)), rows_(files_, datasets) {
    for (size_t f = 0; f < files_.size(); ++f) {
      const auto file = inside([&] { return "in " + describe(); }, [&] { return rows_.describe(f); });
      first_.push_back(size_);
      size_ += file.rows;
      if (f == 0) shapes_ = file.shapes;
      for (size_t d = 0; d < datasets.size(); ++d)
        if (file.shapes[d] != shapes_[d])
          badData("a row of dataset '{}' is {} in {} and {} in {}; all files of {} must agree", datasets[d],
                  Shape(shapes_[d]).brief(), files_[0], Shape(file.shapes[d]).brief(), files_[f], list);
    }
    for (const auto& shape : shapes_) floats_ += Shape(shape).count();
    constexpr int64_t kAhead = 1 << 18;  // floats that are read at a time
    block_ = oneByOne ? 1 : std::max<int64_t>(1, kAhead / floats_);
  }
  int64_t size() const override { return size_; }
  std::string describe() const override { return "HDF5 files of " + list_; }
  const std::vector<int64_t>& firstOfFile() const { return first_; }
  const std::vector<std::vector<int>>& shapes() const { return shapes_; }

  Record read(int64_t i) const override {
    const auto file = static_cast<size_t>(std::upper_bound(first_.begin(), first_.end(), i) - first_.begin()) - 1;
    const int64_t row = i - first_[file], from = row / block_ * block_;
    const auto bytes = block(file, from);
    const size_t width = static_cast<size_t>(floats_) * sizeof(float);
    return {files_[file], std::string_view(*bytes).substr(static_cast<size_t>(row - from) * width, width), bytes};
  }

 private:
  using Bytes = std::shared_ptr<const std::string>;
  // Keeps the blocks used last, as each rank reads one block after the other.
  Bytes block(size_t file, int64_t from) const {
    constexpr int64_t kMost = 1 << 24;  // floats
    // A block of one row is not asked for again.
    const auto most = block_ == 1 ? 2 : static_cast<size_t>(std::clamp<int64_t>(kMost / (block_ * floats_), 2, 32));
    const MutexLock lock(mutex_);
    const auto at =
        std::find_if(kept_.begin(), kept_.end(), [&](const auto& k) { return k.file == file && k.from == from; });
    if (at != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, at);
      return at->bytes;
    }
    const int64_t end = file + 1 < first_.size() ? first_[file + 1] : size_, rows = end - first_[file];
    auto bytes = std::make_shared<const std::string>(rows_.read(file, from, std::min(block_, rows - from), floats_));
    kept_.push_front({file, from, bytes});
    if (kept_.size() > most) kept_.pop_back();
    return bytes;
  }
  struct Kept {
    size_t file;
    int64_t from;
    Bytes bytes;
  };

  std::string list_;
  std::vector<std::string> files_;
  model::Hdf5Rows rows_;
  std::vector<int64_t> first_;
  std::vector<std::vector<int>> shapes_;
  int64_t size_ = 0, floats_ = 0, block_ = 1;
  mutable Mutex mutex_;
  mutable std::list<Kept> kept_ CREMA_GUARDED_BY(mutex_);
};

class RowSamples : public SampleMaker {
 public:
  explicit RowSamples(const std::vector<std::vector<int>>& shapes) {
    for (const auto& dims : shapes) shapes_.emplace_back(dims);
  }
  void make(const Record& record, const SampleRandom&, int, const std::vector<float*>& out) const override {
    const char* from = record.value.data();
    for (size_t t = 0; t < out.size(); ++t) {
      const size_t bytes = static_cast<size_t>(shapes_[t].count()) * sizeof(float);
      std::memcpy(out[t], from, bytes);
      from += bytes;
    }
  }
};

}  // namespace

Hdf5Data openHdf5Data(const std::string& list, const std::vector<std::string>& datasets, bool oneByOne) {
  const auto source = std::make_shared<const Hdf5Source>(list, datasets, oneByOne);
  return {source, std::make_shared<const RowSamples>(source->shapes()), source->firstOfFile()};
}

}  // namespace crema::data
