// Batches made ahead of time by one background thread, in the order in which a worker asks for them: for every
// iteration, for each of its ranks in ascending order, for each sub-step. A request out of that order starts the thread
// anew from there.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "data/shard.h"
#include "data/source.h"
#include "data/transformer.h"
#include "tensor/blob.h"

namespace crema {

struct Batch {
  int64_t step = 0;
  int rank = 0;
  std::vector<float> data, labels;  // [n][channels][height][width] and [n]
  int n = 0;
};

struct FeedOptions {
  int batch = 1, ranks = 1, stepsPerRank = 1, prefetch = 4;
  std::vector<int> myRanks = {0};
  uint64_t seed = 1;
  std::string layer;  // names the random numbers
};

// Makes one batch on the calling thread: records [first, ...] by their indices. kData names source, key and what is
// wrong.
void makeBatch(const RecordSource& source, const Transformer& transformer, const Shape& recordShape,
               const std::vector<int64_t>& indices, const FeedOptions& options, int64_t step, int rank, Batch* batch);

class BatchFeed {
 public:
  BatchFeed(std::shared_ptr<const RecordSource> source, Transformer transformer, const FeedOptions& options);
  ~BatchFeed();                                  // stops the thread; does not wait for more than the batch in hand
  const Shape& shape() const { return shape_; }  // of one record after the transform
  // Valid until the next call. Errors of the background thread are thrown here.
  const Batch& next(int rank, int64_t step);

 private:
  struct Place {
    int64_t step;
    size_t rank;
  };  // rank: index in myRanks
  Place after(Place p) const;
  void restart(int rank, int64_t step);
  void stop();
  void produce(Place from);

  std::shared_ptr<const RecordSource> source_;
  Transformer transformer_;
  FeedOptions options_;
  Shape shape_;
  Batch current_;
  Place expected_{0, 0};  // what the front of ready_ is, or will be
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::vector<Batch> spare_;  // their memory is used again
  std::exception_ptr failed_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace crema
