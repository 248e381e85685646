// Batches made ahead of time by one background thread, in the order in which a worker asks for them: for every
// iteration, for each of its ranks in ascending order, for each sub-step. A request out of that order starts the thread
// anew from there.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "data/samples.h"
#include "data/shard.h"
#include "data/shuffle.h"
#include "data/source.h"

namespace crema::data {

struct Batch {
  int64_t step = 0;
  int rank = 0;
  int n = 0;
  std::vector<Shape> shapes;             // of one sample, for each top
  std::vector<std::vector<float>> tops;  // [n][sample] each
  std::vector<int64_t> records;          // their numbers in the source
  std::vector<std::string> ids;          // their keys, while scoring
};

struct FeedOptions {
  int batch = 1, ranks = 1, stepsPerRank = 1, prefetch = 4;
  std::vector<int> myRanks = {0};
  uint64_t seed = 1;
  std::string layer;     // names the random numbers
  bool shuffle = false;  // every epoch of a rank in an order of its own, drawn by seed, layer, epoch and rank
  std::shared_ptr<const FileOrder> files;  // with shuffle: one order of all records, file by file, dealt to the ranks
  bool skipping = false;                   // pass over records that cannot be decoded; else they are errors
  bool test = false;  // batches of the TEST phase: one sequence, shared out to so many workers by TestDealing
  int workers = 1;
  // Which record item i of a batch is, where batches are drawn; unset: they are dealt (data/shard.h).
  std::function<int64_t(const SampleRandom& batch, int item)> choose;
};

// Records that were passed over, each counted once. The first few are named in the log.
class SkippedRecords {
 public:
  void add(int64_t record, const Error& why);
  bool has(int64_t record) const;
  int64_t count() const;

 private:
  mutable std::mutex mutex_;
  std::set<int64_t> records_;
};

// A test batch without a record that can be decoded: a run's means leave it out.
class EmptyBatch : public Error {
 public:
  explicit EmptyBatch(std::string why) : Error(ErrorKind::kData, std::move(why)) {}
};

// What both ways of making batches share.
struct BatchMaker {
  std::shared_ptr<const RecordSource> source;
  std::shared_ptr<const SampleMaker> samples;
  FeedOptions options;
  std::shared_ptr<SkippedRecords> skipped = std::make_shared<SkippedRecords>();

  // Training: batch `step` of a rank. A record that cannot be decoded is replaced by the next good one of the rank, so
  // every batch is full and no batch depends on what ran before. kData when a rank has no good record at all. Test
  // batches that do not wrap: by the next good one of the batch, as others may not be here; EmptyBatch without one.
  void train(int rank, int64_t step, Batch* batch) const;
  // Scoring: the records [from, to) of the source in order, without those that cannot be decoded.
  void score(int64_t from, int64_t to, int64_t step, Batch* batch) const;

  int64_t testCycle() const { return options.test ? TestDealing::cycleOf(source->size(), options.batch) : 0; }

 private:
  void begin(int n, int64_t step, int rank, Batch* batch) const;
  SampleRandom randomOf(const Batch& batch) const;
  int64_t recordAt(const Dealing& dealing, int rank, int64_t position) const;
  bool put(int64_t record, int item, Batch* batch) const;  // false: passed over
};

class BatchFeed {
 public:
  explicit BatchFeed(BatchMaker maker);
  ~BatchFeed();  // stops the thread; does not wait for more than the batch in hand
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

  BatchMaker maker_;
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

}  // namespace crema::data
