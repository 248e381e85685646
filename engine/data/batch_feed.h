// Batches made ahead of time by one background thread, in the order in which a worker asks for them: for every
// iteration, for each of its ranks in ascending order, for each sub-step. A request out of that order starts another
// thread there.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/interrupt.h"
#include "base/mutex.h"
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
  // With shuffle: one shuffled order of all records, file by file, sharded over ranks.
  std::shared_ptr<const FileOrder> files;
  bool skipping = false;  // skip records that cannot be decoded; else they are errors
  bool test = false;      // batches of the TEST phase: one sequence, sharded over workers by TestSharding
  int workers = 1;
  // Chooses the record of an item where batches are drawn at random; unset: records are sharded (data/shard.h).
  std::function<int64_t(const SampleRandom& batch, int item)> choose;
};

// Records that were skipped, each counted once. The first few are named in the log.
class SkippedRecords {
 public:
  void add(int64_t record, const Error& why);
  bool has(int64_t record) const;
  int64_t count() const;

 private:
  mutable Mutex mutex_;
  std::set<int64_t> records_ CREMA_GUARDED_BY(mutex_);
};

// A test batch without a decodable record, which the means of a test leave out.
class EmptyBatch : public Error {
 public:
  explicit EmptyBatch(std::string why) : Error(ErrorKind::kData, std::move(why)) {}
};

// Makes one batch, for training and for scoring.
struct BatchMaker {
  std::shared_ptr<const RecordSource> source;
  std::shared_ptr<const SampleMaker> samples;
  FeedOptions options;
  std::shared_ptr<SkippedRecords> skipped = std::make_shared<SkippedRecords>();

  // Training: batch `step` of a rank. A record that cannot be decoded is replaced by the next good one of the rank, so
  // every batch is full and no batch depends on what ran before. kData when a rank has no good record at all. Test
  // batches that do not wrap: by the next good one of the batch, as this worker may have no others; EmptyBatch if there
  // is none.
  void train(int rank, int64_t step, Batch* batch) const;
  // Scoring: the records [from, to) of the source in order, without those that cannot be decoded.
  void score(int64_t from, int64_t to, int64_t step, Batch* batch) const;

  int64_t testCycle() const { return options.test ? TestSharding::cycleOf(source->size(), options.batch) : 0; }

 private:
  void begin(int n, int64_t step, int rank, Batch* batch) const;
  SampleRandom randomOf(const Batch& batch) const;
  int64_t recordAt(const Sharding& sharding, int rank, int64_t position) const;
  std::optional<Record> put(int64_t record, int item, Batch* batch) const;  // nothing: skipped
};

class BatchFeed {
 public:
  explicit BatchFeed(BatchMaker maker);
  ~BatchFeed();  // ends the threads after the batch that each is making
  // Valid until the next call. Errors of the background thread are thrown here, and the reason of the interrupt once it is
  // raised: the batch that was waited for is the next one still.
  const Batch& next(int rank, int64_t step, const Interrupt* interrupt = nullptr);
  // The values of the last batch have been copied: another may be made in their memory. Without it they stay until next();
  // meanwhile that batch counts as one of the `prefetch` that have memory.
  void giveBack();
  double waited() const { return waited_; }  // seconds that next() has taken
  // Other ranks, or test batches shared out over other workers, from the next call of next() on. Drops what is ready where
  // they are others. Waits for nothing: a thread that waits for records ends when they have come.
  void assign(std::vector<int> myRanks, int workers);

 private:
  class Producer;
  struct Place {
    int64_t step;
    size_t rank;
  };  // rank: index in myRanks
  static Place after(const BatchMaker& maker, Place p);
  void restart(int rank, int64_t step);
  void retire();

  BatchMaker maker_;
  Batch current_;
  double waited_ = 0;
  Place expected_{0, 0};                            // the place of the batch that producer_ gives next
  std::unique_ptr<Producer> producer_;              // null: next() starts one
  std::vector<std::unique_ptr<Producer>> retired_;  // which may still be making a batch
};

}  // namespace crema::data
