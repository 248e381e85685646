// What a host program sends after its Job reaches the sources of the data layers; what contradicts the Job is refused.
#include "worker/host_rows.h"

#include <gtest/gtest.h>

#include <thread>

#include "data/row.h"
#include "support/hand_clock.h"
#include "support/message_of.h"
#include "support/settle.h"
#include "support/shared_data.h"

namespace crema::worker {
namespace {

using crema::test::messageOf;
using crema::test::soon;

const std::string kVersions = "; host and executable are of different versions";

class HostRowsTest : public testing::Test {
 protected:
  // Worker 1 of 2, two ranks: of 8 rows in batches of 2 it owns 2, 3, 6 and 7.
  HostRowsTest() {
    job_.set_ranks(2), job_.set_workers(2), job_.set_worker(1), job_.set_work_folder(folder_.path());
    feed(job_.mutable_train_rows(), "DataFrame train");
    feed(job_.mutable_test_rows(), "DataFrame test");
  }
  static void feed(wire::RowFeed* f, const std::string& description) {
    f->set_records(8), f->set_sharded(true), f->set_batch(2), f->set_description(description);
  }
  std::unique_ptr<HostRows> make(bool scoring = false) {
    return std::make_unique<HostRows>(
        job_, scoring, [this](const wire::Event& e) { asked_.push_back(e.need()); }, &interrupt_);
  }
  // Rows from `first` on with ids "r<first>", "r<first+1>"... as this worker owns them, and a field of two bytes.
  static wire::Input rows(bool test, int64_t first, const std::vector<std::string>& ids) {
    wire::Input in;
    in.mutable_rows()->set_test(test);
    auto* batch = in.mutable_rows()->mutable_batch();
    batch->set_first(first), batch->set_rows(static_cast<int>(ids.size()));
    auto *id = batch->add_column(), *value = batch->add_column();
    value->set_width(2);
    for (const auto& s : ids) {
      id->mutable_values()->append(s), id->add_length(static_cast<uint32_t>(s.size()));
      value->mutable_values()->append(s.substr(0, 1) + "=");
    }
    return in;
  }
  static wire::Input end(bool test) {
    wire::Input in;
    in.mutable_end()->set_test(test);
    return in;
  }
  static std::string field(const data::Record& r) { return std::string(data::RowReader(r.value).next()); }
  static std::string refusal(HostRows& h, const wire::Input& in) {
    return messageOf([&] { h.accept(in); });
  }

  crema::test::TemporaryFolder folder_;
  wire::Job job_;
  std::vector<wire::Event::Need> asked_;
  Interrupt interrupt_;
};

TEST_F(HostRowsTest, RowsComeInPiecesAndAreReadByTheirNumbers) {
  const auto h = make();
  h->accept(rows(false, 2, {"a"}));
  h->accept(rows(false, 3, {"bb", "ccc"}));  // rows 3 and 6: 6 is the next that this worker owns
  std::string late;
  std::thread reader([&] { late = std::string(h->train->read(7).key); });  // waits until row 7 comes
  h->accept(rows(false, 7, {"d"}));
  reader.join();
  EXPECT_EQ(late, "d");
  EXPECT_EQ(h->train->read(2).key, "a");
  EXPECT_EQ(field(h->train->read(3)), "b=");
  EXPECT_EQ(h->train->read(6).key, "ccc");
  EXPECT_EQ(refusal(*h, end(false)), "no error");
  EXPECT_EQ(h->activity.arrived, 4);
  EXPECT_EQ(h->activity.preparing, 0);
}

TEST_F(HostRowsTest, TestRowsAreSharedOutByBatchesAmongWorkers) {
  const auto h = make();
  h->accept(rows(true, 2, {"a", "b"}));
  h->accept(rows(true, 6, {"c", "d"}));
  EXPECT_EQ(refusal(*h, end(true)), "no error");
  EXPECT_EQ(h->test->read(6).key, "c");

  job_.mutable_test_rows()->set_records(2);  // one batch, which worker 0 owns
  const auto none = make();
  EXPECT_EQ(refusal(*none, rows(true, 0, {"a", "b"})),
            "the host sends row 0 of DataFrame test to the wrong worker" + kVersions);
  EXPECT_EQ(refusal(*none, end(true)), "no error") << "it owns nothing";
}

TEST_F(HostRowsTest, WrongOrderAndOverlapsAreNamed) {
  const auto h = make();
  EXPECT_EQ(refusal(*h, rows(false, 6, {"a"})),
            "row 6 of DataFrame train came where row 2 of 8 was expected" + kVersions);
  h->accept(rows(false, 2, {"a", "b"}));
  EXPECT_EQ(refusal(*h, rows(false, 3, {"b"})),
            "row 3 of DataFrame train came where row 6 of 8 was expected" + kVersions);
  EXPECT_EQ(refusal(*h, rows(false, 4, {"c"})),
            "the host sends row 4 of DataFrame train to the wrong worker" + kVersions);
  h->accept(rows(false, 6, {"c", "d"}));
  EXPECT_EQ(refusal(*h, rows(false, 7, {"e"})),
            "row 7 of DataFrame train came where row -1 of 8 was expected" + kVersions);
}

TEST_F(HostRowsTest, ColumnsOfAnotherWidthAreRefused) {
  const auto h = make();
  wire::Input in = rows(false, 2, {"a", "b"});
  auto* id = in.mutable_rows()->mutable_batch()->mutable_column(0);
  id->add_length(0);  // three lengths for two rows; their sum fits
  EXPECT_EQ(refusal(*h, in),
            "a batch of 2 rows from the host has a column of 2 bytes where 2 are announced" + kVersions);
  id->mutable_length()->Truncate(2);
  id->set_length(1, 2);
  EXPECT_EQ(refusal(*h, in),
            "a batch of 2 rows from the host has a column of 2 bytes where 3 are announced" + kVersions);
  id->set_length(1, 1);
  in.mutable_rows()->mutable_batch()->mutable_column(1)->set_width(3);
  EXPECT_EQ(refusal(*h, in),
            "a batch of 2 rows from the host has a column of 4 bytes where 6 are announced" + kVersions);
  EXPECT_EQ(h->activity.arrived, 0) << "nothing of a bad batch is kept";
}

TEST_F(HostRowsTest, AnEndThatComesTooEarlyIsNamed) {
  const auto h = make();
  h->accept(rows(false, 2, {"a", "b", "c"}));
  EXPECT_EQ(refusal(*h, end(false)),
            "3 rows of DataFrame train came where 4 were counted before; its contents changed, or are drawn anew at "
            "each reading: write them to files first, or give -persistent");
}

TEST_F(HostRowsTest, RowsThatNoJobAnnouncesAreRefused) {
  job_.clear_train_rows(), job_.clear_test_rows();
  const auto h = make();
  EXPECT_EQ(refusal(*h, rows(false, 2, {"a"})),
            "the host sends rows for TRAIN, which its Job does not announce" + kVersions);
  EXPECT_EQ(refusal(*h, rows(true, 2, {"a"})),
            "the host sends rows for TEST, which its Job does not announce" + kVersions);
}

TEST_F(HostRowsTest, ScoringReadsAWindowOfWhateverComes) {
  const auto h = make(true);
  EXPECT_FALSE(h->train || h->test);
  h->accept(rows(true, 0, {"a", "b", "c"}));
  EXPECT_EQ(h->window->waitFor(2), 2);
  EXPECT_EQ(h->window->read(1).key, "b");
  h->accept(end(true));
  EXPECT_EQ(h->window->waitFor(10), 3);
}

TEST_F(HostRowsTest, RemoteRangesAreAskedForAndAnswered) {
  auto* f = job_.mutable_train_file();
  f->set_size(100000), f->set_description("hdfs://n/db"), f->set_read_ahead(1);
  const auto h = make();
  std::string_view bytes;
  std::thread reader([&] { bytes = h->trainFile->range(70000, 5); });
  wire::Input in;
  in.mutable_bytes()->set_offset(65536), in.mutable_bytes()->set_data(std::string(34464, 'z'));
  EXPECT_EQ(refusal(*h, in), "no error");
  reader.join();
  EXPECT_EQ(bytes, "zzzzz");
  EXPECT_EQ(h->activity.arrived, 1);
  in.mutable_bytes()->set_offset(7);
  EXPECT_EQ(refusal(*h, in), "the host sent bytes [7, 34471) of hdfs://n/db, which nobody asked for" + kVersions);
  in.mutable_bytes()->set_test(true);
  EXPECT_EQ(refusal(*h, in), "the host sends bytes of a file that its Job does not announce" + kVersions);
}

TEST_F(HostRowsTest, ARangeIsAskedForOnceWithItsReadAhead) {
  auto* f = job_.mutable_test_file();
  f->set_size(300000), f->set_description("hdfs://n/db"), f->set_read_ahead(131072);
  const auto h = make();
  wire::Input in;
  in.mutable_bytes()->set_test(true), in.mutable_bytes()->set_data(std::string(131072, 'y'));
  h->accept(in);
  EXPECT_EQ(h->testFile->range(100000, 2), "yy");
  EXPECT_TRUE(asked_.empty()) << "it is here";
  h->fail(Error(ErrorKind::kIo, "gone"));
  EXPECT_EQ(messageOf([&] { h->testFile->range(200000, 2); }), "gone");
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_TRUE(asked_[0].test());
  EXPECT_EQ(asked_[0].offset(), 196608u);
  EXPECT_EQ(asked_[0].length(), 103392u) << "to the end of the file, as the read-ahead reaches it";
}

TEST_F(HostRowsTest, WordsOfTheHostAreCountedAndKept) {
  const auto h = make();
  wire::Input published, preparing, request;
  published.mutable_published()->set_iteration(10), preparing.mutable_preparing(),
      request.mutable_wish()->set_stop(true);
  h->accept(published), h->accept(preparing), h->accept(preparing), h->accept(request);
  EXPECT_EQ(h->published, 1);
  EXPECT_EQ(h->activity.preparing, 2);
  EXPECT_EQ(h->activity.arrived, 3);
  EXPECT_TRUE(h->stopRequested);
  EXPECT_FALSE(h->snapshotRequested);
  request.mutable_wish()->set_stop(false), request.mutable_wish()->set_snapshot(true);
  h->accept(request);
  EXPECT_TRUE(h->stopRequested) << "whoever takes a request sets it back";
  EXPECT_EQ(h->snapshotsAsked, 0);
  EXPECT_TRUE(h->snapshotRequested);
  request.mutable_wish()->set_snapshots(2), h->accept(request);
  EXPECT_EQ(h->snapshotsAsked, 2);
}

TEST_F(HostRowsTest, WhatTheHostCouldNotDoIsItsError) {
  for (const bool bytes : {true, false}) {
    const auto h = make();
    wire::Input in;
    (bytes ? *in.mutable_bytes()->mutable_failed() : *in.mutable_published()->mutable_failed()) = "the disk is full";
    try {
      h->accept(in);
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kIo);
      EXPECT_STREQ(e.what(), "the disk is full");
    }
    EXPECT_TRUE(h->hostFailed);
    EXPECT_EQ(h->published, 0);
  }
}

TEST_F(HostRowsTest, AFailureReachesEveryReader) {
  const auto h = make();
  std::string train, test;
  std::thread one([&] { train = messageOf([&] { h->train->read(2); }); });
  std::thread two([&] { test = messageOf([&] { h->test->read(2); }); });
  h->fail(Error(ErrorKind::kPeer, "the host is gone"));
  one.join(), two.join();
  EXPECT_EQ(train, "the host is gone");
  EXPECT_EQ(test, "the host is gone");
}

TEST_F(HostRowsTest, TrainingWaitsForTheFirstRowOrTheWordThatThereIsNone) {
  for (const auto& word : {rows(false, 2, {"a"}), end(true)}) {
    job_.mutable_test_rows()->set_records(2);  // this worker owns none of them
    const auto h = make();
    std::atomic<bool> over{false};
    std::thread waiting([&] {
      h->waitForRows(interrupt_);
      over = true;
    });
    wire::Input preparing;
    preparing.mutable_preparing();
    h->accept(preparing);
    crema::test::settle();
    EXPECT_FALSE(over);
    h->accept(word);
    EXPECT_TRUE(soon([&] { return over.load(); }));
    waiting.join();
  }
  const auto h = make();
  interrupt_.raise(Error(ErrorKind::kStopped, "enough"));
  EXPECT_EQ(messageOf([&] { h->waitForRows(interrupt_); }), "enough");
}

}  // namespace
}  // namespace crema::worker
