// Rows that a repeated feeding task brings again, and room for blocks that have not come yet.
#include "node/places.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "node/broker.h"
#include "support/message_of.h"

namespace crema::node {
namespace {

using crema::test::messageOf;

constexpr int64_t kCall = 77;

wire::NodeRequest::Place placeOf(int64_t partition, int64_t at, int64_t call = kCall) {
  wire::NodeRequest::Place place;
  place.set_call(call), place.set_partition(partition), place.set_at(at);
  return place;
}

Item shardOf(int64_t partition, int64_t at, int64_t rows, int64_t call = kCall) {
  Item item;
  item.block = std::make_shared<Descriptor>(::memfd_create("block", MFD_CLOEXEC));
  item.rows = item.count = rows, item.bytes = 100, item.place = placeOf(partition, at, call);
  return item;
}

class PlacesTest : public testing::Test {
 protected:
  bool put(const Item& item, Item* as = nullptr) { return b_.put("input", item, now(), as); }
  static Wait now() { return {Deadline::after(0)}; }
  wire::NodeNote::Counted counted(int64_t call = kCall) {
    wire::NodeNote::Counted asked;
    asked.set_queue("input"), asked.set_serial(5), asked.set_call(call);
    return b_.counted(asked);
  }
  Broker b_{{"input", "output", "error"}, 1000};
};

TEST_F(PlacesTest, WhatHasComeIsLeftOutWhereverTheNextBlocksBegin) {
  ASSERT_TRUE(put(shardOf(3, 0, 10)) && put(shardOf(3, 10, 10)));  // then the task fails, and begins anew
  ASSERT_TRUE(put(shardOf(3, 0, 7)) && put(shardOf(3, 7, 7)));
  EXPECT_EQ(b_.count("input"), 2) << "all of both has come before";
  Item as;
  ASSERT_TRUE(put(shardOf(3, 14, 9), &as));
  EXPECT_EQ(as.first, 6);
  EXPECT_EQ(as.count, 3);
  ASSERT_TRUE(put(shardOf(4, 0, 2), &as)) << "another partition has its own places";
  EXPECT_EQ(as.count, 2);
  EXPECT_EQ(b_.totals().put, 25);
  EXPECT_EQ(counted().rows(), 25);
  EXPECT_EQ(counted().serial(), 5);
}

TEST_F(PlacesTest, RoomIsTakenOnceForRowsThatComeOnce) {
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(put(shardOf(0, 0, 5)));
  for (int i = 1; i < 10; ++i) ASSERT_TRUE(put(shardOf(0, 5 * i, 5)));
  EXPECT_NE(messageOf([&] { (void)put(shardOf(0, 50, 5)); }).find("Timeout while feeding partition"), std::string::npos)
      << "ten blocks of 100 bytes are the budget";
}

TEST_F(PlacesTest, RowsThatAreMissingAreNoted) {
  ASSERT_TRUE(put(shardOf(0, 0, 5)));
  EXPECT_NE(messageOf([&] { (void)put(shardOf(0, 6, 5)); }).find("from place 6 on, and only 5 came before them"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { (void)put(shardOf(0, -1, 5)); }), "no error");
}

TEST_F(PlacesTest, WhatWasCountedDoesNotChange) {
  ASSERT_TRUE(put(shardOf(0, 0, 5)));
  EXPECT_EQ(counted().of_call(), 5);
  EXPECT_NE(messageOf([&] { (void)put(shardOf(0, 5, 5)); }).find("after the end of their train()"), std::string::npos);
  EXPECT_EQ(b_.count("input"), 1);
}

// A train() that failed leaves rows in the queue: they belong to the epoch that ends next, and not to the next call.
TEST_F(PlacesTest, RowsOfACallThatFailedCountForTheEpochAlone) {
  ASSERT_TRUE(put(shardOf(0, 0, 5, kCall - 1)));
  ASSERT_TRUE(put(shardOf(0, 0, 3)));
  const auto first = counted();
  EXPECT_EQ(first.rows(), 8);
  EXPECT_EQ(first.of_call(), 3);
  EXPECT_NE(messageOf([&] { (void)put(shardOf(0, 5, 5, kCall - 1)); }), "no error") << "its tasks are too late";
  wire::NodeNote::Epoch end;
  end.set_queue("input");
  b_.endEpoch(end);
  ASSERT_TRUE(put(shardOf(0, 0, 4, kCall + 1)));
  EXPECT_EQ(counted(kCall + 1).rows(), 4);
}

// Of a program that ends: whether rows waited, came later, or were not wanted.
TEST_F(PlacesTest, AProgramThatEndsBeforeItsRowsIsNoted) {
  Broker waited({"input"}, 1000), later({"input"}, 1000), stopped({"input"}, 1000), failed({"input"}, 1000);
  ASSERT_TRUE(waited.put("input", shardOf(0, 0, 5), now()));
  waited.programEnded();
  EXPECT_TRUE(waited.totals().left);
  later.programEnded();
  EXPECT_FALSE(later.totals().left);
  EXPECT_FALSE(later.put("input", shardOf(0, 0, 5), now()));
  EXPECT_TRUE(later.totals().left);
  for (Broker* b : {&stopped, &failed}) ASSERT_TRUE(b->put("input", shardOf(0, 0, 5), now()));
  stopped.set("state", "\"terminating\"");
  failed.fail(Error(ErrorKind::kData, "the program was killed"));
  for (Broker* b : {&stopped, &failed}) {
    b->programEnded();
    EXPECT_FALSE(b->totals().left);
  }
}

TEST_F(PlacesTest, RoomThatWasReservedIsUsedOrGivenBack) {
  ASSERT_TRUE(b_.reserve("input", 900, now()));
  EXPECT_NE(messageOf([&] { (void)b_.reserve("input", 200, now()); }).find("make room"), std::string::npos);
  b_.release("input", 900);
  ASSERT_TRUE(b_.reserve("input", 1000, now()));
  Item item = shardOf(0, 0, 5);
  item.bytes = 1000, item.reserved = true;
  ASSERT_TRUE(put(item)) << "it needs no room but its own";
  EXPECT_NE(messageOf([&] { (void)b_.reserve("input", 1, now()); }), "no error");
  ASSERT_TRUE(b_.get("input", 0, now()));
  b_.done("input", 1000, 1);
  ASSERT_TRUE(b_.reserve("input", 1000, now()));
  item.place = placeOf(0, 0);  // again: it is left out, and its room is free
  ASSERT_TRUE(put(item));
  ASSERT_TRUE(b_.reserve("input", 1000, now()));
  b_.set("state", "\"terminating\"");
  EXPECT_FALSE(b_.reserve("input", 1, now()));
  EXPECT_TRUE(b_.reserve("output", 1 << 30, now())) << "results are not counted";
}

}  // namespace
}  // namespace crema::node
