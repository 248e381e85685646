#include "worker/publications.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/hand_clock.h"
#include "support/message_of.h"

namespace crema::worker {
namespace {

using crema::test::messageOf;

class PublicationsTest : public testing::Test {
 protected:
  Publications make(bool byHost) {
    return Publications(
        byHost, 600, published_, [this](const wire::Event& e) { reported_.push_back(e.snapshot().iteration()); },
        [this] {
          ++waited_;
          if (waiting_) waiting_();
        },
        interrupt_);
  }
  static wire::Event snapshot(int64_t iteration) {
    wire::Event e;
    e.mutable_snapshot()->set_iteration(iteration);
    return e;
  }
  using Iterations = std::vector<int64_t>;

  std::atomic<int64_t> published_{0};
  Iterations reported_;
  int waited_ = 0;
  std::function<void()> waiting_;
  Interrupt interrupt_;
};

TEST_F(PublicationsTest, WithoutAHostASnapshotIsReportedAtOnce) {
  Publications p = make(false);
  p.taken(snapshot(4));
  EXPECT_EQ(reported_, Iterations{4});
  p.waitForAll();
  EXPECT_EQ(waited_, 0);
}

TEST_F(PublicationsTest, EachIsReportedOnceAndAfterItsPublication) {
  Publications p = make(true);
  p.taken(snapshot(4)), p.taken(snapshot(8));
  p.reportPublished();
  EXPECT_EQ(reported_, Iterations());
  published_ = 1;
  p.reportPublished(), p.reportPublished();
  EXPECT_EQ(reported_, Iterations{4});
  p.taken(snapshot(12));
  waiting_ = [&] { published_ = waited_ < 3 ? 2 : 3; };
  p.waitForAll();
  EXPECT_EQ(reported_, (Iterations{4, 8, 12}));
  EXPECT_EQ(waited_, 3);
}

constexpr char kLate[] =
    "the snapshot of iteration 8 was not published within 600 s; is the file system of -model slow or gone? "
    "spark.crema.stepTimeout (a tenth of that) changes the limit";

TEST_F(PublicationsTest, OneThatIsNotPublishedEndsTheTrainingAtItsDeadline) {
  crema::test::HandClock clock;
  Publications p = make(true);
  clock.advance(5000);
  p.taken(snapshot(4)), p.taken(snapshot(8));
  clock.advance(599);
  p.reportPublished();
  published_ = 1;
  p.reportPublished();  // the second one's time begins here
  clock.advance(599);
  p.reportPublished();
  clock.advance(2);
  EXPECT_EQ(messageOf([&] { p.reportPublished(); }), kLate);
  published_ = 2;
  p.reportPublished();
  clock.advance(5000);
  p.reportPublished();
  EXPECT_EQ(reported_, (Iterations{4, 8}));
}

TEST_F(PublicationsTest, OneThatIsNotPublishedEndsTheWaitAtItsDeadline) {
  crema::test::HandClock clock;
  Publications p = make(true);
  p.taken(snapshot(4)), p.taken(snapshot(8));
  published_ = 1;
  waiting_ = [&] { clock.advance(waited_ < 3 ? 299 : 1.5); };  // 299, 598, 599.5, 601
  EXPECT_EQ(messageOf([&] { p.waitForAll(); }), kLate);
  EXPECT_EQ(waited_, 4);
  EXPECT_EQ(reported_, Iterations{4});
}

TEST_F(PublicationsTest, AnInterruptEndsTheWait) {
  Publications p = make(true);
  p.taken(snapshot(4));
  waiting_ = [&] { interrupt_.raise(Error(ErrorKind::kPeer, "worker 1 was lost")); };
  EXPECT_EQ(messageOf([&] { p.waitForAll(); }), "worker 1 was lost");
  EXPECT_EQ(reported_, Iterations());
}

}  // namespace
}  // namespace crema::worker
