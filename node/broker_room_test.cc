// Room in a node: who waits for it, and who gets it.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/hand_clock.h"
#include "support/items.h"
#include "support/message_of.h"
#include "support/settle.h"

namespace crema::node {
namespace {

using crema::test::messageOf;

class BrokerRoomTest : public WithBroker {};

// Bytes count until done(), not until get(): the program still has them.
TEST_F(BrokerRoomTest, BlocksWaitForRoom) {
  ASSERT_TRUE(b_.put("input", blockOf(1, 600), now()));
  EXPECT_NE(messageOf([&] { (void)b_.put("input", blockOf(1, 500), now()); }).find("Timeout while feeding partition"),
            std::string::npos);
  ASSERT_TRUE(b_.get("input", 0, now()));
  EXPECT_NE(messageOf([&] { (void)b_.put("input", blockOf(1, 500), now()); }), "no error");
  std::thread later([&] { b_.done("input", 600, 1); });
  EXPECT_TRUE(b_.put("input", blockOf(1, 500), soon()));
  later.join();
  EXPECT_FALSE(b_.join("input", now()));
}

TEST_F(BrokerRoomTest, ABlockAboveTheBudgetIsTakenAlone) {
  ASSERT_TRUE(b_.put("input", blockOf(1, 5000), now()));
  EXPECT_NE(messageOf([&] { (void)b_.put("input", blockOf(1, 1), now()); }), "no error");
  ASSERT_TRUE(b_.get("input", 0, now()));
  b_.done("input", 5000, 1);
  EXPECT_TRUE(b_.put("input", blockOf(1, 1), now()));
}

// A large block and then a small one wait behind 600 of 1000 bytes: 300 would fit at once, and may not go first.
TEST_F(BrokerRoomTest, RoomIsGivenInTheOrderOfThoseWhoWait) {
  Broker b({"input", "labels"}, 1000);
  ASSERT_TRUE(b.put("input", blockOf(1, 600), now()));
  std::atomic<bool> waits = false, smallIsIn = false;
  std::thread large([&] {
    EXPECT_TRUE(b.put("input", blockOf(2, 900), {Deadline::after(60), [&] { return waits = true, false; }}));
  });
  ASSERT_TRUE(crema::test::soon([&] { return waits.load(); }));
  std::thread small([&] {
    EXPECT_TRUE(b.put("input", blockOf(3, 300), soon()));
    smallIsIn = true;
  });
  crema::test::settle();
  EXPECT_FALSE(smallIsIn);
  EXPECT_TRUE(b.put("labels", blockOf(4, 300), now())) << "another queue is not held up";
  const auto take = [&](const char* queue, int64_t rows) {
    const auto item = b.get(queue, 0, soon());
    ASSERT_TRUE(item);
    EXPECT_EQ(item->rows, rows);
    b.done(queue, item->bytes, 1);
  };
  take("labels", 4), take("input", 1), take("input", 2), take("input", 3);
  large.join(), small.join();
}

// The first in line gives up: the next has its turn.
TEST_F(BrokerRoomTest, WhoGivesUpWaitingMakesWayForTheNext) {
  ASSERT_TRUE(b_.put("input", blockOf(1, 600), now()));
  std::atomic<bool> waits = false, gone = false;
  std::thread large([&] {
    EXPECT_EQ(
        messageOf([&] {
          (void)b_.put("input", blockOf(2, 900), {Deadline::after(60), [&] { return waits = true, gone.load(); }});
        }),
        "the client has gone");
  });
  ASSERT_TRUE(crema::test::soon([&] { return waits.load(); }));
  std::thread small([&] { EXPECT_TRUE(b_.put("input", blockOf(3, 300), soon())); });
  crema::test::settle();
  gone = true;
  large.join(), small.join();
  EXPECT_EQ(b_.count("input"), 2);
}

// A program that validates seldom: rows of "validation" have filled the room, and it waits for "input".
TEST_F(BrokerRoomTest, AQueueThatTheProgramWaitsForHasRoomThoughAnotherHasFilledIt) {
  Broker b({"input", "validation"}, 1000);
  ASSERT_TRUE(b.put("validation", blockOf(1, 990), now()));
  std::string why = messageOf([&] { (void)b.put("input", blockOf(2, 100), now()); });
  EXPECT_NE(why.find("; queue 'validation' holds"), std::string::npos) << why;
  std::thread feeding([&] {
    for (int64_t rows = 2; rows < 5; ++rows) EXPECT_TRUE(b.put("input", blockOf(rows, 100), soon()));
  });
  for (int64_t rows = 2; rows < 5; ++rows) {
    const auto item = b.get("input", 0, soon());
    ASSERT_TRUE(item);
    EXPECT_EQ(item->rows, rows);
    b.done("input", 100, 1);
  }
  feeding.join();
  EXPECT_FALSE(b.get("input", 0, now()));
  EXPECT_NE(b.standing().find(" while the program waits for rows of queue 'input'"), std::string::npos) << b.standing();
}

// A program that makes a list of all arrays: what it keeps is its own, and it is not stopped for it.
TEST_F(BrokerRoomTest, WhoKeepsEverythingAndWaitsGetsTheNextBlock) {
  Broker b({"input"}, 1000);
  std::thread feeding([&] {
    for (int64_t rows = 1; rows < 6; ++rows) EXPECT_TRUE(b.put("input", blockOf(rows, 400), soon()));
  });
  for (int64_t rows = 1; rows < 6; ++rows) ASSERT_EQ(b.get("input", 0, soon()).value().rows, rows);
  feeding.join();
  EXPECT_NE(messageOf([&] { (void)b.put("input", blockOf(6, 400), now()); }), "no error") << "it does not wait";
}

// What the program has in use counts: who keeps everything gets an eighth of the room more, and no further.
TEST_F(BrokerRoomTest, TheRoomBesideAFullQueueIsBounded) {
  Broker b({"input", "validation"}, 1000);
  ASSERT_TRUE(b.put("validation", blockOf(1, 1000), now()));
  std::thread program([&] {
    EXPECT_TRUE(b.get("input", 0, soon()));
    EXPECT_TRUE(b.get("input", 0, soon()));
    EXPECT_EQ(messageOf([&] { (void)b.get("input", 0, soon()); }), "over");
  });
  EXPECT_TRUE(b.put("input", blockOf(1, 60), soon()));
  EXPECT_TRUE(b.put("input", blockOf(1, 60), soon()));
  EXPECT_NE(messageOf([&] { (void)b.put("input", blockOf(1, 60), {Deadline::after(0.5)}); }), "no error");
  b.fail(Error(ErrorKind::kData, "over"));
  program.join();
}

}  // namespace
}  // namespace crema::node
