// What the coordinator does for any work: its members join, start, report, fail and end. What training adds is tested in
// worker/.
#include "cluster/coordinator.h"

#include <gtest/gtest.h>

#include "cluster/session.h"
#include "support/coordinator_ends.h"
#include "support/message_of.h"
#include "support/plain_work.h"
#include "support/settle.h"

namespace crema::cluster {
namespace {

using crema::test::HandClock;
using crema::test::settle;
using crema::test::soon;
using test::ScriptedMember;

class AnyWork : public testing::Test {
 protected:
  AnyWork() {
    options_.secret = test::kToken, options_.jobDigest = test::kJobDigest;
    options_.members = 2, options_.joinTimeout = 5, options_.stepTimeout = 10;
    c_ = std::make_unique<test::RunningCoordinator>(options_, std::make_unique<test::PlainWork>());
  }
  ~AnyWork() override { test::PlainWork::diskStands = false; }
  void join(int member) {
    nodes_.emplace_back(c_->address(), member);
    nodes_.back().sayHello();
    EXPECT_TRUE(c_->saw([&](const wire::Event& e) { return e.has_joined() && e.joined().worker() == member; }));
  }
  void start() {
    for (const int member : {0, 1}) join(member);
    for (auto& n : nodes_) n.sayReady();
    for (auto& n : nodes_) EXPECT_TRUE(n.hear().has_start());
  }
  void endsWith(ErrorKind kind, const std::string& message) {
    for (auto& n : nodes_) {
      EXPECT_EQ(n.hearAbort(), name(kind) + (": " + message));
      n.hangUp();
    }
    ASSERT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
    ASSERT_TRUE(c_->error());
    EXPECT_EQ(c_->error()->what(), message);
  }

  bool advancing() {  // as the next heartbeat says
    settle();
    while (nodes_[0].spokenTo()) (void)nodes_[0].hearAnything();
    clock_.advance(1.1);
    const auto m = nodes_[0].hearAnything();
    EXPECT_TRUE(m.has_alive()) << m.ShortDebugString();
    return m.alive().advancing();
  }
  void learnsThatItIsLate() {
    Interrupt stop, interrupt;
    std::atomic<bool> over{false};
    std::thread answers([&] {
      c_->coordinator().answerLate(stop);
      over = true;
    });
    SessionOptions o;
    o.coordinator = c_->address(), o.secret = test::kToken, o.member = "node 1", o.coordinatorListens = true;
    control::ToCoordinator::Hello hello;
    hello.set_attempt(2);
    {
      Session late(o, hello, interrupt);
      EXPECT_EQ(crema::test::messageOf([&] { (void)late.waitForStart(); }),
                "the run was over before attempt 2 of node 1 could join it, or was needed");
    }
    stop.raise(Error(ErrorKind::kStopped, "the driver's job has ended"));
    EXPECT_TRUE(clock_.advanceUntil([&] { return over.load(); }));
    answers.join();
  }
  void endsWell() {
    for (auto& n : nodes_) {
      EXPECT_TRUE(n.hear().has_bye());
      n.hangUp();
    }
    EXPECT_TRUE(soon([&] { return c_->over(); }));
    EXPECT_FALSE(c_->error());
  }

  HandClock clock_;
  CoordinatorOptions options_;
  std::vector<ScriptedMember> nodes_;
  std::unique_ptr<test::RunningCoordinator> c_;
};

TEST_F(AnyWork, RunsToItsEnd) {
  start();
  nodes_[0].sayFinished("one");
  nodes_[1].sayProgress(7);
  EXPECT_TRUE(c_->saw([](const wire::Event& e) { return e.progress().iteration() == 7; }));
  nodes_[1].sayPiece("half"), nodes_[1].sayPiece("whole", 9);
  for (const bool whole : {false, true}) {
    const auto kept = nodes_[1].hear().kept();
    EXPECT_EQ(kept.bytes(), whole ? 9u : 4u);
    EXPECT_EQ(kept.whole(), whole);
  }
  nodes_[1].sayFinished("another state, which this work allows");
  endsWell();
}

TEST_F(AnyWork, CompletesReports) {
  start();
  nodes_[0].sayFinished("one");
  settle();
  nodes_[1].sayProgress(7);
  EXPECT_TRUE(c_->saw([](const wire::Event& e) { return e.progress().max_iter() == 1; }));
  for (auto& n : nodes_) n.hangUp();
  EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
}

TEST_F(AnyWork, NamesWhoIsMissingInItsOwnWords) {
  join(1);
  nodes_[0].sayReady();
  settle();
  clock_.advance(5.5);
  endsWith(ErrorKind::kTimeout,
           "2 nodes wanted, 1 here; waited 5 s; missing: node 0. Free that many executor slots, or ask for fewer "
           "nodes");
}

TEST_F(AnyWork, ItsChecksEndTheRun) {
  for (const int member : {0, 1}) join(member);
  for (auto& n : nodes_) n.sayReady("state", "too few");
  endsWith(ErrorKind::kData, "there is too little to do");
}

TEST_F(AnyWork, TheLastStatesAreItsToJudge) {
  start();
  for (auto& n : nodes_) n.sayFinished("wrong");
  endsWith(ErrorKind::kData, "node 1 (at 127.0.0.1:7001, host h1, pid 101) is wrong");
}

TEST_F(AnyWork, WhoFinishesBeforeTheStartHasNotFinished) {
  join(0);
  nodes_[0].sayReady(), nodes_[0].sayFinished("early");
  settle();
  nodes_[0].hangUp();
  ASSERT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
  ASSERT_TRUE(c_->error());
  EXPECT_EQ(std::string(c_->error()->what()).find("node 0 (at 127.0.0.1:7000, host h0, pid 100) was lost"), 0u)
      << c_->error()->what();
}

TEST_F(AnyWork, OnlyTheFirstReadyCounts) {
  start();
  nodes_[0].sayFinished("one");
  nodes_[1].sayFinished("one");
  nodes_[1].sayReady("wrong", "another");  // no state to be compared at the end
  endsWell();
}

TEST_F(AnyWork, APauseOfAnotherGenerationChangesNothing) {
  start();
  nodes_[1].sayFinished("one"), nodes_[1].sayPaused(9, 0);
  settle();
  nodes_[1].hangUp();
  settle();
  nodes_[0].sayFinished("one");
  EXPECT_TRUE(nodes_[0].hear().has_bye());
  nodes_[0].hangUp();
  EXPECT_TRUE(soon([&] { return c_->over(); }));
  EXPECT_FALSE(c_->error());
}

// Members that wait judge by it how long.
TEST_F(AnyWork, TheCoordinatorsHeartbeatSaysWhetherAnyoneComputes) {
  for (const int member : {0, 1}) join(member);
  EXPECT_FALSE(advancing()) << "they gather";
  for (auto& n : nodes_) n.sayReady();
  EXPECT_TRUE(advancing());
  nodes_[0].sayBeat(0, 1, true), nodes_[1].sayBeat(0, 1);
  EXPECT_TRUE(advancing());
  clock_.advance(1);
  EXPECT_FALSE(advancing()) << "one that computes has not been heard of for three seconds";
  nodes_[1].sayBeat(0, 1, true);
  EXPECT_FALSE(advancing());
  nodes_[1].sayBeat(0, 2);
  EXPECT_TRUE(advancing());
  nodes_[1].sayFinished("one");
  EXPECT_FALSE(advancing());
  nodes_[0].sayFinished("one");
  EXPECT_TRUE(nodes_[1].hear().has_start());
  endsWell();
}

// Also where a later heartbeat of that member, before the coordinator's own, says that none have since.
TEST_F(AnyWork, TheCoordinatorsHeartbeatSaysWhetherBytesHaveMoved) {
  start();
  const auto waits = [&](int w, int64_t transferred) {
    nodes_[static_cast<size_t>(w)].sayBeat(0, 1, true, 0, 0, transferred);
  };
  for (const int w : {0, 1}) waits(w, 0);
  EXPECT_FALSE(advancing());
  waits(1, 100), waits(1, 100);
  EXPECT_TRUE(advancing());
  EXPECT_FALSE(advancing()) << "they have been heard of";
  for (const int w : {0, 1}) waits(w, w * 100);
  EXPECT_FALSE(advancing()) << "as many as before";
  waits(0, 1);
  EXPECT_TRUE(advancing());
  for (auto& n : nodes_) n.sayFinished("one");
  endsWell();
}

// Whether it has ended well or not.
TEST_F(AnyWork, WhoComesBehindTheRunLearnsSo) {
  start();
  for (auto& n : nodes_) n.sayFinished("one");
  endsWell();
  learnsThatItIsLate();
}
TEST_F(AnyWork, WhoComesBehindARunThatFailedLearnsSo) {
  start();
  nodes_[1].sayPiece("refused");
  endsWith(ErrorKind::kData, "node 1 (at 127.0.0.1:7001, host h1, pid 101) sent what nobody wants");
  learnsThatItIsLate();
}

TEST_F(AnyWork, ALossHasItsRemedy) {
  start();
  nodes_[1].hangUp();
  ASSERT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
  ASSERT_TRUE(c_->error());
  const std::string message = c_->error()->what();
  EXPECT_EQ(message.find("node 1 (at 127.0.0.1:7001, host h1, pid 101) was lost in step 0: "), 0u) << message;
  EXPECT_EQ(message.find("; run it again") + std::string("; run it again").size(), message.size()) << message;
}

// As a file system over a network does for some minutes.
TEST_F(AnyWork, ADiskThatStandsHoldsUpNothingElse) {
  start();
  test::PlainWork::diskStands = true;
  nodes_[1].sayPiece("slow", 4);
  for (int second = 0; second < 20; ++second) {
    settle();
    clock_.advance(1);
    for (auto& n : nodes_) EXPECT_TRUE(n.hearAnything().has_alive()) << second;
    for (auto& n : nodes_) n.sayBeat(0, 1, true);
  }
  test::PlainWork::diskStands = false;
  EXPECT_TRUE(nodes_[1].hear().kept().whole());
  for (auto& n : nodes_) n.sayFinished("one");
  endsWell();
}

TEST_F(AnyWork, ADiskThatStandsForEverEndsTheRun) {
  start();
  test::PlainWork::diskStands = true;
  nodes_[1].sayPiece("slow", 4);
  for (int i = 0; i < 20; ++i) {
    settle();
    EXPECT_FALSE(c_->over());
    clock_.advance(5);
    for (auto& n : nodes_) n.sayBeat(0, 1, true);
  }
  settle();
  clock_.advance(0.6);
  endsWith(ErrorKind::kIo, "a file could not be written for 101 s; does its file system answer?");
}

TEST_F(AnyWork, APieceThatIsRefusedEndsTheRun) {
  start();
  nodes_[1].sayPiece("refused");
  endsWith(ErrorKind::kData, "node 1 (at 127.0.0.1:7001, host h1, pid 101) sent what nobody wants");
}

}  // namespace
}  // namespace crema::cluster
