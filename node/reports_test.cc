// What the host asks of a node while its program takes nothing.
#include "node/reports.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "support/settle.h"

namespace crema::node {
namespace {

class ReportsTest : public testing::Test {
 protected:
  ReportsTest() {
    Item item;
    item.block = std::make_shared<Descriptor>(::memfd_create("rows", MFD_CLOEXEC));
    EXPECT_EQ(::write(item.block->get(), "rows", 4), 4);
    item.rows = item.count = 2, item.bytes = 4;
    kept_.add("input", item);
  }
  static wire::NodeNote replay(int epochs, const std::string& queue = "input") {
    wire::NodeNote note;
    note.mutable_replay()->add_queue()->set_queue(queue);
    note.mutable_replay()->set_epochs(epochs), note.mutable_replay()->set_serial(epochs);
    return note;
  }
  Broker broker_{{"input", "other"}, 6};  // room for one block
  Kept kept_{testing::TempDir()};
  Interrupt interrupt_;
  Reports reports_{broker_, kept_, interrupt_};
};

// The thread that hears of the run's end must not wait for a program that takes nothing.
TEST_F(ReportsTest, AReplayIsWithdrawnByTheNextAndNobodyWaitsForIt) {
  reports_.asked(replay(1000));
  ASSERT_TRUE(crema::test::soon([&] { return broker_.count("input") == 2; })) << "an epoch, and its mark";
  std::atomic<bool> heard = false;
  std::thread listener([&] {
    reports_.asked(replay(0));
    heard = true;
  });
  EXPECT_TRUE(crema::test::soon([&] { return heard.load(); }));
  EXPECT_TRUE(crema::test::soon([&] { return reports_.waiting(); })) << "the second replay is over, as it is none";
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(broker_.get("input", 0, {Deadline::after(0)}));
  broker_.done("input", 4, 2);
  crema::test::settle();
  EXPECT_EQ(broker_.count("input"), 0) << "neither rows nor marks come behind it";
  broker_.fail(Error(ErrorKind::kStopped, "the test ends"));
  listener.join();
}

// Two calls of train(), of two queues.
TEST_F(ReportsTest, AReplayOfAnotherQueueWithdrawsNothing) {
  reports_.asked(replay(2));
  reports_.asked(replay(0, "other"));
  ASSERT_TRUE(crema::test::soon([&] { return reports_.waiting(); })) << "the second is over";
  const Wait wait{Deadline::after(60)};
  for (int epoch = 0; epoch < 2; ++epoch) {
    EXPECT_EQ(broker_.get("input", 0, wait).value().rows, 2);
    broker_.done("input", 4, 1);
    EXPECT_EQ(broker_.get("input", 0, wait).value().mark, wire::END_OF_EPOCH);
    broker_.done("input", 0, 1);
  }
}

}  // namespace
}  // namespace crema::node
