// Failures of one member's machine: how many the run survives.
#include "cluster/losses.h"

#include <gtest/gtest.h>

#include "cluster/coordinator.h"
#include "support/coordinator_ends.h"
#include "support/plain_work.h"

namespace crema::cluster {
namespace {

using test::ScriptedMember;

TEST(Losses, FailuresOfAMachineAreForgottenAfterAnHour) {
  Losses losses;
  EXPECT_EQ(losses.ofItsMachine(3, 0), 1);
  EXPECT_EQ(losses.ofItsMachine(3, 1800), 2);
  EXPECT_EQ(losses.ofItsMachine(2, 1800), 1);
  EXPECT_EQ(losses.ofItsMachine(3, 3601), 2);
  EXPECT_EQ(losses.ofItsMachine(3, 3602), 3);
  EXPECT_EQ(Losses::often(3), ", for the third time within an hour");
}

class MachineTest : public testing::Test {
 protected:
  MachineTest() {
    options_.secret = test::kToken, options_.jobDigest = test::kJobDigest;
    options_.members = 2, options_.replacement = Replacement::kGoOn;
    c_ = std::make_unique<test::RunningCoordinator>(options_, std::make_unique<test::PlainWork>());
    members_ = test::startedMembers(c_->address(), 2);
  }
  // Member 1 fails in the generation of that number, and comes again; member 0 goes on.
  void failsAndComes(int time) {
    members_[1].sayFailed("the disk is full", name(ErrorKind::kIo), 7);
    EXPECT_TRUE(members_[0].hear().has_regroup());
    members_[0].sayPaused(static_cast<uint32_t>(time), time);
    members_[1] = ScriptedMember(c_->address(), 1);
    members_[1].hello.set_attempt(time);
    members_[1].sayHello(), members_[1].sayReady();
    for (auto& m : members_) EXPECT_TRUE(m.hear().has_start());
  }

  crema::test::HandClock clock_;
  CoordinatorOptions options_;
  std::vector<ScriptedMember> members_;
  std::unique_ptr<test::RunningCoordinator> c_;
};

TEST_F(MachineTest, ThreeFailuresWithinAnHourEndTheRun) {
  for (const int time : {1, 2}) failsAndComes(time);
  EXPECT_EQ(c_->count([](const wire::Event& e) { return e.has_lost(); }), 2u);
  EXPECT_EQ(c_->count([](const wire::Event& e) { return e.has_lost() && e.lost().attempt() == 1; }), 1u);
  members_[1].sayFailed("the disk is full", name(ErrorKind::kIo), 7);
  const std::string abort = members_[0].hearAbort();
  EXPECT_NE(abort.find("failed in step 7, for the third time within an hour: the disk is full"), std::string::npos)
      << abort;
  for (auto& m : members_) m.hangUp();
  EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
}

TEST_F(MachineTest, TheLastOneThatIsLostIsSaidToBe) {
  const auto lost = [&](int member, bool last) {
    return c_->count(
        [&](const wire::Event& e) { return e.has_lost() && e.lost().worker() == member && e.lost().last() == last; });
  };
  members_[0].hangUp();
  EXPECT_TRUE(members_[1].hear().has_regroup());
  members_[1].hangUp();
  EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
  EXPECT_EQ(lost(0, false), 1u);
  EXPECT_EQ(lost(1, true), 1u);
}

}  // namespace
}  // namespace crema::cluster
