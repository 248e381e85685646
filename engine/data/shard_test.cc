// Which worker computes a test batch, and which records it needs.
#include "data/shard.h"

#include <gtest/gtest.h>

#include <set>

#include "data/batch_feed.h"
#include "data/staged_source.h"

namespace crema::data {
namespace {

// TestSharding::after() against stepping one by one to the owner's next batch.
TEST(TestSharding, TheOwnersNextBatchIsTheNextThatIsHis) {
  for (const int64_t cycle : {0, 1, 2, 3, 7, 10})
    for (const int workers : {1, 2, 3, 5, 12}) {
      const TestSharding d{cycle, workers};
      for (int64_t g = 0; g < 60; ++g) {
        const int64_t number = cycle ? g % cycle : g;
        ASSERT_EQ(d.owner(g), number % workers) << g << " " << cycle << " " << workers;
        int64_t next = g + 1;
        while (d.owner(next) != d.owner(g)) ++next;
        ASSERT_EQ(d.after(g), next) << g << " " << cycle << " " << workers;
      }
    }
}

// The rows of the batches that a worker owns, counted batch by batch, are those of its StagePlan: each row belongs to
// exactly one worker, also where there are more workers than batches.
TEST(TestSharding, AWorkersBatchesAreTheRowsOfItsPlan) {
  for (const int batch : {1, 4, 10})
    for (const int64_t batches : {1, 2, 3, 7, 20})
      for (const int workers : {1, 2, 3, 5, 12}) {
        const int64_t records = batch * batches;
        const TestSharding d{TestSharding::cycleOf(records, batch), workers};
        ASSERT_EQ(d.cycle, batches);
        const int owners = static_cast<int>(std::min<int64_t>(workers, batches));
        for (int w = 0; w < workers; ++w) {
          const int lo = std::min(w, owners);
          const StagePlan plan{records, true, batch, owners, lo, std::min(lo + 1, owners)};
          std::set<int64_t> mine;
          for (int64_t g = 3 * batches; g < 4 * batches; ++g)  // in the fourth test it is as in the first
            for (int i = 0; d.owner(g) == w && i < batch; ++i) mine.insert(g % batches * batch + i);
          ASSERT_EQ(plan.expected(), static_cast<int64_t>(mine.size()));
          for (int64_t r = 0; r < records; ++r) ASSERT_EQ(plan.localOf(r) >= 0, mine.count(r) == 1) << r << " " << w;
          int64_t local = 0;
          for (const int64_t r : mine) ASSERT_EQ(plan.globalOf(local++), r);
        }
      }
  EXPECT_EQ(TestSharding::cycleOf(101, 10), 0);
}

// Record i has the key "i"; another worker owns those in `absent`.
class Numbers : public RecordSource {
 public:
  explicit Numbers(int64_t size, std::set<int64_t> absent = {}) : absent_(std::move(absent)) {
    for (int64_t i = 0; i < size; ++i) keys_.push_back(std::to_string(i));
  }
  int64_t size() const override { return static_cast<int64_t>(keys_.size()); }
  Record read(int64_t i) const override {
    if (absent_.count(i)) internal("record {} is not here", i);
    return {keys_[static_cast<size_t>(i)], ""};
  }
  std::string describe() const override { return "numbers"; }

 private:
  std::vector<std::string> keys_;
  std::set<int64_t> absent_;
};

class Samples : public SampleMaker {
 public:
  explicit Samples(std::set<int> damaged = {}) : damaged_(std::move(damaged)) { shapes_ = {Shape({1})}; }
  void make(const Record& record, const SampleRandom&, int, const std::vector<float*>& out) const override {
    const int number = std::stoi(std::string(record.key));
    if (damaged_.count(number)) throw Undecodable("is damaged");
    out[0][0] = static_cast<float>(number);
  }

 private:
  std::set<int> damaged_;
};

BatchMaker testMaker(int batch, int workers, std::shared_ptr<const RecordSource> source, std::set<int> damaged = {}) {
  BatchMaker maker;
  maker.source = std::move(source);
  maker.samples = std::make_shared<Samples>(std::move(damaged));
  maker.options.batch = batch, maker.options.test = true, maker.options.workers = workers;
  maker.options.skipping = true;
  return maker;
}

// Only the worker's own batches are made ahead: reading a record of another worker fails here.
TEST(TestSharding, AFeedReadsNoOtherWorkersRecords) {
  const int batch = 4, batches = 7, workers = 3;
  for (int w = 0; w < workers; ++w) {
    const TestSharding d{batches, workers};
    std::set<int64_t> absent;
    for (int64_t r = 0; r < batch * batches; ++r)
      if (d.owner(r / batch) != w) absent.insert(r);
    BatchFeed feed(testMaker(batch, workers, std::make_shared<Numbers>(batch * batches, absent)));
    for (int64_t g = 5; g < 40; ++g) {  // three tests of 7 batches and parts of others
      if (d.owner(g) != w) continue;
      const Batch& b = feed.next(0, g);
      for (int i = 0; i < batch; ++i) ASSERT_EQ(b.records[static_cast<size_t>(i)], g % batches * batch + i);
    }
  }
}

// 12 records in batches of 4, of which 3, 4 and 8 to 11 are damaged.
TEST(TestSharding, ADamagedRecordIsReplacedInItsOwnBatch) {
  BatchFeed feed(testMaker(4, 1, std::make_shared<Numbers>(12), {3, 4, 8, 9, 10, 11}));
  for (int64_t round = 0; round < 3; ++round) {
    EXPECT_EQ(feed.next(0, 3 * round).records, (std::vector<int64_t>{0, 1, 2, 0}));
    EXPECT_EQ(feed.next(0, 3 * round + 1).records, (std::vector<int64_t>{5, 5, 6, 7}));
    EXPECT_THROW(feed.next(0, 3 * round + 2), EmptyBatch);
  }
  // This worker has all records.
  BatchFeed wrapping(testMaker(5, 1, std::make_shared<Numbers>(12), {3, 4, 8, 9, 10, 11}));
  EXPECT_EQ(wrapping.next(0, 1).records, (std::vector<int64_t>{5, 6, 7, 0, 0}));
}

}  // namespace
}  // namespace crema::data
