#include "data/shuffle.h"

#include <algorithm>

namespace crema::data {

int64_t permuted(const RandomStream& stream, int64_t n, int64_t place) {
  if (n < 2) return 0;
  int bits = 1;  // of each half
  while ((int64_t{1} << (2 * bits)) < n) ++bits;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  auto x = static_cast<uint64_t>(place);
  do {
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t left = x >> bits, right = x & mask;
      const auto block = stream.block(round << 32 | right);
      x = right << bits | (left ^ (block[0] & mask));
    }
  } while (x >= static_cast<uint64_t>(n));
  return static_cast<int64_t>(x);
}

int64_t FileOrder::recordsOf(int64_t file) const {
  const auto f = static_cast<size_t>(file);
  return (f + 1 < first_.size() ? first_[f + 1] : records_) - first_[f];
}

std::shared_ptr<const FileOrder::Files> FileOrder::filesOf(int64_t epoch,
                                                           const std::function<RandomStream(int64_t)>& stream) const {
  constexpr size_t kMostKept = 4;
  const MutexLock lock(mutex_);
  auto& files = epochs_[epoch];
  if (files) return files;
  const auto made = std::make_shared<Files>();
  const auto count = static_cast<int64_t>(first_.size());
  int64_t begin = 0;
  const RandomStream order = stream(-1);
  for (int64_t i = 0; i < count; ++i) {
    made->file.push_back(permuted(order, count, i));
    made->begin.push_back(begin);
    begin += recordsOf(made->file.back());
  }
  const std::shared_ptr<const Files> kept = files = made;
  if (epochs_.size() > kMostKept)
    epochs_.erase(epochs_.begin()->first == epoch ? std::prev(epochs_.end()) : epochs_.begin());
  return kept;
}

int64_t FileOrder::at(int64_t epoch, int64_t place, const std::function<RandomStream(int64_t)>& stream) const {
  const auto files = filesOf(epoch, stream);
  const auto i =
      static_cast<size_t>(std::upper_bound(files->begin.begin(), files->begin.end(), place) - files->begin.begin()) - 1;
  const int64_t file = files->file[i];
  return first_[static_cast<size_t>(file)] + permuted(stream(file), recordsOf(file), place - files->begin[i]);
}

}  // namespace crema::data
