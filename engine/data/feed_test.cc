// Batches ahead of time, from databases.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/mutex.h"
#include "data/batch_feed.h"
#include "data/lmdb_writer.h"
#include "data/shuffle.h"
#include "support/hand_clock.h"
#include "support/message_of.h"
#include "support/records.h"
#include "support/shared_data.h"

namespace crema::data {
namespace {

using test::datum;
using test::messageOf;

std::shared_ptr<const RecordSource> lmdbOf(const std::string& path, int count,
                                           const std::function<caffe::Datum(int)>& make) {
  LmdbWriter writer(path);
  for (int i = 0; i < count; ++i) writer.put(fmt::format("{:08d}", i), make(i).SerializeAsString());
  writer.finish();
  return openSource(caffe::DataParameter::LMDB, path);
}

BatchMaker datumMaker(std::shared_ptr<const RecordSource> source, int batch, int ranks, std::vector<int> mine,
                      int steps) {
  BatchMaker m;
  m.source = source;
  m.samples = datumSamples({}, true, *source);
  m.options.batch = batch, m.options.ranks = ranks, m.options.myRanks = std::move(mine);
  m.options.stepsPerRank = steps, m.options.prefetch = 2;
  return m;
}

TEST(BatchFeed, OrderSeekAndContents) {
  test::TemporaryFolder folder;
  const auto source = lmdbOf(folder.file("db"), 50, [](int i) { return datum(1, 2, 2, i % 10, i); });
  BatchFeed feed(datumMaker(source, 4, 3, {0, 2}, 2));
  const auto check = [&](int rank, int64_t step) {
    const Batch& b = feed.next(rank, step);
    for (int i = 0; i < 4; ++i) {
      const int64_t record = recordIndex({50, 4, 3}, rank, step * 4 + i);
      EXPECT_EQ(b.tops[1][static_cast<size_t>(i)], static_cast<float>(record % 10));
      EXPECT_EQ(b.tops[0][static_cast<size_t>(i) * 4], static_cast<float>(record % 256));
      EXPECT_EQ(b.records[static_cast<size_t>(i)], record);
    }
  };
  for (int64_t iteration = 0; iteration < 8; ++iteration)
    for (int rank : {0, 2})
      for (int sub = 0; sub < 2; ++sub) check(rank, iteration * 2 + sub);
  check(2, 3);    // back
  check(0, 100);  // ahead, and on from there
  check(0, 101);
  check(2, 100);
}

TEST(BatchFeed, NoMoreBatchesHaveMemoryThanAreMadeAhead) {
  test::TemporaryFolder folder;
  const auto source = lmdbOf(folder.file("db"), 50, [](int i) { return datum(1, 2, 2, i % 10, i); });
  for (const int prefetch : {1, 3}) {
    BatchMaker maker = datumMaker(source, 4, 1, {0}, 1);
    maker.options.prefetch = prefetch;
    BatchFeed feed(maker);
    std::set<const float*> places;
    for (int64_t step = 0; step < 40; ++step) {
      const Batch& b = feed.next(0, step);
      EXPECT_EQ(b.tops[1][0], static_cast<float>(recordIndex({50, 4, 1}, 0, step * 4) % 10));
      places.insert(b.tops[0].data());
      if (step % 5) feed.giveBack();
    }
    EXPECT_LE(places.size(), static_cast<size_t>(prefetch));
  }
}

TEST(BatchFeed, AForeignRecordIsNamed) {
  test::TemporaryFolder folder;
  const auto source =
      lmdbOf(folder.file("db"), 9, [](int i) { return i == 6 ? datum(1, 3, 3, 0) : datum(1, 2, 2, 0); });
  BatchFeed feed(datumMaker(source, 3, 1, {0}, 1));
  feed.next(0, 0);
  feed.next(0, 1);
  const std::string m = messageOf([&] { feed.next(0, 2); });
  EXPECT_NE(m.find("00000006"), std::string::npos) << m;
  EXPECT_NE(m.find("1x3x3"), std::string::npos) << m;
}

// With batch_size 1 every batch has its record's shape, while training and while scoring, also after a larger one.
TEST(BatchFeed, RecordsOfAnySizeOneByOne) {
  test::TemporaryFolder folder;
  const auto source = lmdbOf(folder.file("db"), 3, [](int i) { return datum(1, 2 + 3 * (i % 2), 3 + i, i, 7 + i); });
  ImageOptions varying;
  varying.varies = true;
  BatchMaker m = datumMaker(source, 1, 1, {0}, 1);
  m.samples = datumSamples(varying, true, *source);
  BatchFeed feed(m);
  Batch scored;
  for (int64_t step = 0; step < 6; ++step) {
    const int i = static_cast<int>(step % 3), height = 2 + 3 * (i % 2), width = 3 + i;
    m.score(i, i + 1, step, &scored);
    for (const Batch* b : {&feed.next(0, step), const_cast<const Batch*>(&scored)}) {
      EXPECT_TRUE(b->shapes[0] == (Shape{1, height, width})) << b->shapes[0].brief();
      ASSERT_EQ(b->tops[0].size(), static_cast<size_t>(height * width));
      for (int k = 0; k < height * width; ++k) EXPECT_EQ(b->tops[0][static_cast<size_t>(k)], 7 + i + k);
      EXPECT_EQ(b->tops[1], std::vector<float>{static_cast<float>(i)});
    }
  }
  m.samples = datumSamples(varying, false, *source);  // one top: no labels
  m.score(1, 2, 0, &scored);
  EXPECT_EQ(scored.tops.size(), 1u);
  EXPECT_EQ(scored.tops[0].size(), 20u);
}

TEST(BatchFeed, FewerRecordsThanRanks) {
  test::TemporaryFolder folder;
  const auto source = lmdbOf(folder.file("db"), 2, [](int i) { return datum(1, 2, 2, i); });
  const std::string m = messageOf([&] { BatchFeed(datumMaker(source, 4, 3, {0}, 1)); });
  EXPECT_NE(m.find("2 records for 3 ranks"), std::string::npos) << m;
}

caffe::Datum undecodable(int label) {
  caffe::Datum d;
  d.set_encoded(true), d.set_label(label), d.set_data("no image at all");
  return d;
}

// Records 3, 4 and 7 are damaged: batches stay full, with the next good record of the rank in each place.
TEST(BatchFeed, UndecodableRecordsArePassedOverAndCounted) {
  test::TemporaryFolder folder;
  const auto bad = [](int i) { return i == 3 || i == 4 || i == 7; };
  const auto source = lmdbOf(folder.file("db"), 10, [&](int i) { return bad(i) ? undecodable(i) : datum(1, 2, 2, i); });
  BatchMaker maker = datumMaker(source, 5, 1, {0}, 1);
  Batch batch;
  EXPECT_NE(messageOf([&] { maker.train(0, 0, &batch); }).find("neither JPEG nor PNG"), std::string::npos);
  maker.options.skipping = true;
  maker.train(0, 0, &batch);
  EXPECT_EQ(batch.records, (std::vector<int64_t>{0, 1, 2, 5, 5}));
  maker.train(0, 1, &batch);
  EXPECT_EQ(batch.records, (std::vector<int64_t>{5, 6, 8, 8, 9}));
  EXPECT_EQ(maker.skipped->count(), 3);
  maker.score(2, 6, 0, &batch);
  EXPECT_EQ(batch.records, (std::vector<int64_t>{2, 5}));
  EXPECT_EQ(batch.n, 2);
  EXPECT_EQ(batch.tops[1], (std::vector<float>{2, 5}));
}

TEST(BatchFeed, OnlyUndecodableRecordsAreAnError) {
  test::TemporaryFolder folder;
  const auto source = lmdbOf(folder.file("db"), 4, [&](int i) { return i == 0 ? datum(1, 2, 2, 0) : undecodable(i); });
  BatchMaker maker = datumMaker(source, 1, 4, {0}, 1);
  maker.options.skipping = true;
  Batch batch;
  const std::string m = messageOf([&] { maker.train(1, 0, &batch); });
  EXPECT_NE(m.find("none of the 1 records of rank 1"), std::string::npos) << m;
}

// Records of another source, each as soon as `open` allows its number; closed, all are there.
class Gate : public RecordSource {
 public:
  explicit Gate(std::shared_ptr<const RecordSource> behind) : behind_(std::move(behind)) {}
  int64_t size() const override { return behind_->size(); }
  std::string describe() const override { return behind_->describe(); }
  Record read(int64_t index) const override {
    MutexLock lock(mutex_);
    ++waiting_;
    changed_.wait(lock.standard(), [&]() CREMA_REQUIRES(mutex_) { return index < open_; });
    --waiting_;
    return behind_->read(index);
  }
  void open(int64_t records) const {
    const MutexLock lock(mutex_);
    open_ = records;
    changed_.notify_all();
  }
  int waiting() const {
    const MutexLock lock(mutex_);
    return waiting_;
  }
  void close() const override { open(size()); }

 private:
  const std::shared_ptr<const RecordSource> behind_;
  mutable Mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int64_t open_ CREMA_GUARDED_BY(mutex_) = 0;
  mutable int waiting_ CREMA_GUARDED_BY(mutex_) = 0;
};

TEST(BatchFeed, TheNextBatchIsMadeOnceTheLastIsGivenBack) {
  test::TemporaryFolder folder;
  const auto gate =
      std::make_shared<Gate>(lmdbOf(folder.file("db"), 24, [](int i) { return datum(1, 2, 2, i % 10, i); }));
  gate->open(4);
  BatchMaker maker = datumMaker(gate, 4, 1, {0}, 1);
  maker.options.prefetch = 1;
  BatchFeed feed(maker);
  EXPECT_EQ(feed.next(0, 0).records[3], 3);
  EXPECT_EQ(gate->waiting(), 0);
  feed.giveBack();
  EXPECT_TRUE(test::soon([&] { return gate->waiting() == 1; }));
}

TEST(BatchFeed, AWaitForRecordsEndsByTheInterruptAndGoesOnBehindIt) {
  test::TemporaryFolder folder;
  const auto gate =
      std::make_shared<Gate>(lmdbOf(folder.file("db"), 24, [](int i) { return datum(1, 2, 2, i % 10, i); }));
  gate->open(9);
  BatchFeed feed(datumMaker(gate, 4, 2, {0, 1}, 1));  // steps of 8 records
  EXPECT_EQ(feed.next(0, 0).records[0], 0);
  EXPECT_EQ(feed.next(1, 0).records[0], 4);
  Interrupt left;
  std::thread leaves([&] {
    EXPECT_TRUE(test::soon([&] { return gate->waiting() == 1; }));
    left.raise(Error(ErrorKind::kStopped, "all meet again"));
  });
  EXPECT_EQ(messageOf([&] { feed.next(0, 1, &left); }), "all meet again");
  leaves.join();
  feed.assign({0, 1}, 1);  // the same: the thread that waits goes on
  Interrupt none;
  std::thread opens([&] { gate->open(16); });
  EXPECT_EQ(feed.next(0, 1, &none).records[3], 11);
  EXPECT_EQ(feed.next(1, 1, &none).records[0], 12);
  opens.join();
  EXPECT_TRUE(test::soon([&] { return gate->waiting() == 1; }));
  feed.assign({1}, 2);  // others, while a thread waits for record 16, and does so until the end
  EXPECT_EQ(feed.next(1, 1).records[3], 15);
  EXPECT_EQ(feed.next(1, 0).records[0], 4);
}

TEST(Shuffle, EveryPlaceOnceAndAnotherOrderForAnotherStream) {
  for (int64_t n : {1, 2, 3, 4, 5, 16, 17, 1000, 4097}) {
    std::set<int64_t> seen;
    std::vector<int64_t> first, second;
    RandomKey key, other;
    other.step = 1;
    for (int64_t i = 0; i < n; ++i) {
      first.push_back(permuted(RandomStream(key), n, i)), second.push_back(permuted(RandomStream(other), n, i));
      EXPECT_TRUE(first.back() >= 0 && first.back() < n);
      seen.insert(first.back());
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), n);
    if (n > 16) {
      EXPECT_NE(first, second);
    }
  }
  // The first place of a permutation is uniform: 20 classes of 1,000 draws, chi-squared with 19 degrees of freedom.
  std::vector<int> hits(20);
  for (uint64_t s = 0; s < 1000; ++s) {
    RandomKey key;
    key.step = s;
    ++hits[static_cast<size_t>(permuted(RandomStream(key), 100, 0) / 5)];
  }
  double chi = 0;
  for (int h : hits) chi += (h - 50.0) * (h - 50.0) / 50.0;
  EXPECT_LT(chi, 43.8);  // exceeded by one in a thousand
}

TEST(BatchFeed, ShuffledEpochsHoldEveryRecordOfTheRankOnce) {
  test::TemporaryFolder folder;
  const auto source = lmdbOf(folder.file("db"), 40, [](int i) { return datum(1, 2, 2, i); });
  BatchMaker maker = datumMaker(source, 5, 2, {1}, 1);
  maker.options.shuffle = true;
  std::vector<std::vector<int64_t>> epochs(3);
  for (int64_t step = 0; step < 12; ++step) {
    Batch batch;
    maker.train(1, step, &batch);
    auto& epoch = epochs[static_cast<size_t>(step / 4)];
    epoch.insert(epoch.end(), batch.records.begin(), batch.records.end());
  }
  for (const auto& epoch : epochs) {
    std::set<int64_t> seen(epoch.begin(), epoch.end());
    EXPECT_EQ(seen.size(), 20u);
    for (const int64_t r : seen) EXPECT_EQ(r / 5 % 2, 1);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

}  // namespace
}  // namespace crema::data
