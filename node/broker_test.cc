#include "node/broker.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "support/hand_clock.h"
#include "support/items.h"
#include "support/message_of.h"
#include "support/settle.h"

namespace crema::node {
namespace {

using crema::test::messageOf;

class BrokerTest : public WithBroker {};

TEST_F(BrokerTest, FirstInFirstOut) {
  ASSERT_TRUE(b_.put("input", blockOf(3, 10), now()));
  ASSERT_TRUE(b_.put("input", blockOf(4, 10), now()));
  ASSERT_TRUE(b_.put("input", markOf(wire::END_OF_FEED), now()));
  EXPECT_EQ(b_.count("input"), 3);
  EXPECT_EQ(b_.get("input", 0, now())->rows, 3);
  EXPECT_EQ(b_.get("input", 0, now())->rows, 4);
  EXPECT_EQ(b_.get("input", 0, now())->mark, wire::END_OF_FEED);
  EXPECT_FALSE(b_.get("input", 0, now()));
  EXPECT_EQ(b_.totals().put, 7);
  EXPECT_EQ(b_.totals().taken, 7);
}

TEST_F(BrokerTest, UnknownQueuesAreNamed) {
  EXPECT_EQ(
      messageOf([&] { (void)b_.put("inputs", markOf(wire::END_OF_FEED), now()); }),
      "Queue 'inputs' not found on this node: it has error, input or output; name it in `queues` of TFCluster.run");
}

TEST_F(BrokerTest, JoinWaitsUntilAllIsDone) {
  EXPECT_TRUE(b_.join("input", now()));
  ASSERT_TRUE(b_.put("input", blockOf(1, 1), now()));
  EXPECT_FALSE(b_.join("input", now()));
  ASSERT_TRUE(b_.get("input", 0, now()));
  EXPECT_FALSE(b_.join("input", now())) << "taken, and still in use";
  b_.done("input", 1, 1);
  EXPECT_TRUE(b_.join("input", now()));
}

// Two feeds, whose blocks lie between each other; results come in pieces of other sizes.
TEST_F(BrokerTest, ResultsGoToTheFeedWhoseRowsTheyAnswer) {
  const uint64_t a = b_.open(), b = b_.open();
  for (const auto& [rows, feed] : {std::pair{3, a}, {2, b}, {1, a}})
    ASSERT_TRUE(b_.put("input", blockOf(rows, 1, feed), now()));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(b_.get("input", 0, now()));
  ASSERT_TRUE(b_.put("output", blockOf(4, 1), now()));  // a's 3, and one of b's
  ASSERT_TRUE(b_.put("output", blockOf(2, 1), now()));  // one of b's, one of a's
  const auto part = [&](uint64_t feed) {
    const auto item = b_.get("output", feed, now());
    return item ? std::pair{item->first, item->count} : std::pair<int64_t, int64_t>{-1, -1};
  };
  EXPECT_EQ(part(a), (std::pair<int64_t, int64_t>{0, 3}));
  EXPECT_EQ(part(a), (std::pair<int64_t, int64_t>{1, 1}));
  EXPECT_EQ(part(b), (std::pair<int64_t, int64_t>{3, 1}));
  EXPECT_EQ(part(b), (std::pair<int64_t, int64_t>{0, 1}));
  EXPECT_EQ(part(b), (std::pair<int64_t, int64_t>{-1, -1}));
}

// A feeding task that was killed: what its rows give must not be taken for another's.
TEST_F(BrokerTest, ResultsOfAFeedThatHasGoneAreDropped) {
  const uint64_t a = b_.open(), b = b_.open();
  ASSERT_TRUE(b_.put("input", blockOf(2, 1, a), now()));
  ASSERT_TRUE(b_.put("input", blockOf(1, 1, b), now()));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(b_.get("input", 0, now()));
  b_.close(a);
  ASSERT_TRUE(b_.put("output", blockOf(3, 1), now()));
  const auto item = b_.get("output", b, now());
  ASSERT_TRUE(item);
  EXPECT_EQ(item->first, 2);
  EXPECT_EQ(b_.count("output"), 0);
  EXPECT_NE(messageOf([&] { (void)b_.get("output", a, now()); }), "no error");
}

// A task that is cancelled closes its feed by one connection while the other one still waits for results.
TEST_F(BrokerTest, AFeedThatIsClosedEndsTheWaitForItsResults) {
  const uint64_t feed = b_.open();
  std::string got;
  std::thread waiting([&] { got = messageOf([&] { (void)b_.get("output", feed, soon()); }); });
  crema::test::settle();
  b_.close(feed);
  const uint64_t next = b_.open();
  waiting.join();
  EXPECT_NE(got.find("has been closed"), std::string::npos) << got;
  b_.close(next);
}

TEST_F(BrokerTest, ATerminatingProgramWantsNoRows) {
  ASSERT_TRUE(b_.put("input", blockOf(5, 900), now()));
  std::thread later([&] { b_.set("state", "\"terminating\""); });
  EXPECT_FALSE(b_.put("input", blockOf(1, 900), soon())) << "a feed that waits for room ends as well";
  later.join();
  EXPECT_EQ(b_.drop("input"), 5);
  EXPECT_FALSE(b_.put("input", blockOf(1, 1), now()));
  EXPECT_TRUE(b_.put("output", blockOf(1, 1), now()));
}

TEST_F(BrokerTest, AFailureEndsAllWaits) {
  std::string put, got;
  ASSERT_TRUE(b_.put("input", blockOf(1, 1000), now()));
  std::thread feeding([&] { put = messageOf([&] { (void)b_.put("input", blockOf(1, 1), soon()); }); });
  std::thread taking([&] { got = messageOf([&] { (void)b_.get("error", 0, soon()); }); });
  b_.fail(Error(ErrorKind::kData, "the program was killed"));
  b_.fail(Error(ErrorKind::kData, "a consequence"));
  feeding.join(), taking.join();
  EXPECT_EQ(put, "the program was killed");
  EXPECT_EQ(got, "the program was killed");
}

TEST_F(BrokerTest, AProgramThatHasEndedOwesItsResults) {
  const uint64_t feed = b_.open();
  ASSERT_TRUE(b_.put("input", blockOf(2, 1, feed), now()));
  ASSERT_TRUE(b_.get("input", 0, now()));
  ASSERT_TRUE(b_.put("output", blockOf(1, 1), now()));
  b_.programEnded();
  EXPECT_FALSE(b_.put("input", blockOf(1, 1), now()));
  EXPECT_TRUE(b_.get("output", feed, now())) << "what it has answered is there";
  EXPECT_EQ(messageOf([&] { (void)b_.get("output", feed, soon()); }),
            "the program has ended before it returned a result for each row");
}

TEST_F(BrokerTest, AClientThatHasGoneWaitsNoLonger) {
  EXPECT_EQ(messageOf([&] {
              (void)b_.get("input", 0, {Deadline::after(60), [] { return true; }});
            }),
            "the client has gone");
}

TEST_F(BrokerTest, TheEndIsBehindAllRowsOfEachFedQueue) {
  ASSERT_TRUE(b_.put("input", blockOf(1, 1), now()));
  b_.endFeeds();
  EXPECT_EQ(b_.get("input", 0, now())->rows, 1);
  EXPECT_EQ(b_.get("input", 0, now())->mark, wire::END_OF_FEED);
  EXPECT_EQ(b_.count("output"), 0);
  EXPECT_EQ(b_.count("error"), 0);
}

// A program that took what has come for all rows would write a model of them.
TEST_F(BrokerTest, AFeedThatHasFailedHasNoEnd) {
  ASSERT_TRUE(b_.put("input", blockOf(1, 1), now()));
  b_.endFeeds("a file is damaged");
  const std::string why = messageOf([&] { (void)b_.get("input", 0, now()); });
  EXPECT_EQ(why.rfind("the feed has failed, and rows are missing: a file is damaged", 0), 0u) << why;
}

TEST_F(BrokerTest, AnEpochEndsBehindItsRowsAndSaysWhatNodesHad) {
  ASSERT_TRUE(b_.put("input", blockOf(1, 1), now()));
  wire::NodeNote::Epoch epoch;
  epoch.set_queue("input"), epoch.set_most(7), epoch.set_least(6);
  b_.endEpoch(epoch);
  epoch.set_queue("no such queue");
  b_.endEpoch(epoch);
  EXPECT_EQ(b_.get("input", 0, now())->rows, 1);
  const auto mark = b_.get("input", 0, now());
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->mark, wire::END_OF_EPOCH);
  EXPECT_EQ(mark->epoch.most(), 7);
  EXPECT_EQ(mark->epoch.least(), 6);
  EXPECT_EQ(b_.totals().taken, 1);
}

TEST_F(BrokerTest, State) {
  EXPECT_EQ(b_.look("state"), "\"running\"");
  EXPECT_EQ(b_.look("other"), std::nullopt);
  b_.set("other", "7");
  EXPECT_EQ(b_.look("other"), "7");
}

}  // namespace
}  // namespace crema::node
