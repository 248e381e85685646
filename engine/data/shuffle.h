// A permutation of 0 .. n - 1 that is computed place by place, so that any step of any epoch can be found at once and
// resuming needs no state: a Feistel network of four rounds over the next power of four, walked until it lands inside
// (at most four steps on average). Rounds are numbers of a RandomStream.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/random.h"

namespace crema::data {

// 0 <= place < n; the same stream gives the same permutation.
int64_t permuted(const RandomStream& stream, int64_t n, int64_t place);

// Shuffling several files as Caffe does: the order of files is shuffled, then the records inside each, so that reads
// stay local. Any thread.
class FileOrder {
 public:
  FileOrder(std::vector<int64_t> firstOfFile, int64_t records) : first_(std::move(firstOfFile)), records_(records) {}
  // The record at `place` of an epoch. stream(-1): the epoch's numbers for the files' order; stream(f): for file f's.
  int64_t at(int64_t epoch, int64_t place, const std::function<RandomStream(int64_t)>& stream) const;

 private:
  struct Files {
    std::vector<int64_t> file, begin;  // in the epoch's order, and the place each begins at
  };
  std::shared_ptr<const Files> filesOf(int64_t epoch, const std::function<RandomStream(int64_t)>& stream) const;
  int64_t recordsOf(int64_t file) const;

  std::vector<int64_t> first_;
  int64_t records_;
  mutable Mutex mutex_;
  mutable std::map<int64_t, std::shared_ptr<const Files>> epochs_ CREMA_GUARDED_BY(mutex_);  // the last few
};

}  // namespace crema::data
