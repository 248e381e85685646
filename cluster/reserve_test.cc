// Processes that Spark starts although the member whose place they would take is well.
#include <gtest/gtest.h>

#include "cluster/coordinator.h"
#include "support/coordinator_ends.h"
#include "support/plain_work.h"
#include "support/settle.h"

namespace crema::cluster {
namespace {

using crema::test::HandClock;
using crema::test::settle;
using crema::test::soon;
using test::ScriptedMember;

class ReserveTest : public testing::Test {
 protected:
  ReserveTest() {
    options_.secret = test::kToken, options_.jobDigest = test::kJobDigest;
    options_.members = 3, options_.joinTimeout = 5, options_.stepTimeout = 10;
    options_.replacement = Replacement::kGoOn;
    c_ = std::make_unique<test::RunningCoordinator>(options_, std::make_unique<test::PlainWork>());
  }
  void SetUp() override { members_ = test::startedMembers(c_->address(), 3); }
  // Of the repeated stage; partition -1: the member's own.
  ScriptedMember repeated(int member, int partition = -1) {
    ScriptedMember m(c_->address(), member);
    m.hello.set_stage_attempt(1), m.hello.set_partition(partition < 0 ? member : partition);
    m.sayHello(), m.sayReady();
    settle();
    return m;
  }
  size_t losses() {
    return c_->count([](const wire::Event& e) { return e.has_lost(); });
  }

  HandClock clock_;
  CoordinatorOptions options_;
  std::vector<ScriptedMember> members_;
  std::unique_ptr<test::RunningCoordinator> c_;
};

TEST_F(ReserveTest, AMemberThatIsWellKeepsItsPlace) {
  ScriptedMember again = repeated(0);
  clock_.advance(3);
  settle();
  EXPECT_EQ(losses(), 0u);
  EXPECT_TRUE(again.hearAnything().has_alive()) << "it is kept, and hears that the coordinator is there";
  for (auto& m : members_) m.sayFinished("one");
  for (auto& m : members_) {
    control::ToMember last = m.hear();
    EXPECT_TRUE(last.has_bye());
    m.hangUp();
  }
  EXPECT_TRUE(again.hear().has_bye());
  EXPECT_TRUE(soon([&] { return c_->over(); }));
  EXPECT_FALSE(c_->error());
}

TEST_F(ReserveTest, TheFirstTaskOfARepeatedStageGetsThePlaceThatIsEmpty) {
  members_[2].hangUp();
  EXPECT_TRUE(c_->saw([](const wire::Event& e) { return e.has_lost() && e.lost().worker() == 2; }));
  for (int w = 0; w < 2; ++w) {
    const control::ToMember m = members_[static_cast<size_t>(w)].hear();
    ASSERT_TRUE(m.has_regroup());
  }
  ScriptedMember again = repeated(0);  // Spark begins with partition 0
  ASSERT_TRUE(clock_.advanceUntil([&] { return again.spokenTo(); }));
  const control::ToMember place = again.hear();
  ASSERT_TRUE(place.has_place());
  EXPECT_EQ(place.place().number(), 2);
  again.hangUp();
  ScriptedMember moved = repeated(2, 0);
  EXPECT_EQ(losses(), 1u) << "members 0 and 1 are as they were";
  EXPECT_EQ(c_->count([](const wire::Event& e) { return e.has_joined() && e.joined().worker() == 2; }), 2u);
}

// An executor with two slots runs two tasks of the repeated stage, and each would be member 2.
TEST_F(ReserveTest, WhoHasAPlaceKeepsItWhenThePlacesOwnTaskComes) {
  members_[2].hangUp();
  EXPECT_TRUE(c_->saw([](const wire::Event& e) { return e.has_lost() && e.lost().worker() == 2; }));
  ScriptedMember moved = repeated(2, 0);
  ScriptedMember own = repeated(2);
  EXPECT_EQ(losses(), 1u);
  clock_.advance(2);
  EXPECT_TRUE(own.hearAnything().has_alive()) << "it is in reserve";
  moved.hangUp();
  ASSERT_TRUE(clock_.advanceUntil([&] { return losses() == 2; }));
  control::ToMember m;
  while (!m.has_place()) m = own.hear();
  EXPECT_EQ(m.place().number(), 2);
}

TEST_F(ReserveTest, WhoFindsItsPromisedPlaceTakenStaysInReserve) {
  members_[2].hangUp();
  EXPECT_TRUE(c_->saw([](const wire::Event& e) { return e.has_lost() && e.lost().worker() == 2; }));
  ScriptedMember own = repeated(2);
  ScriptedMember promised = repeated(2, 0);
  EXPECT_EQ(losses(), 1u);
  clock_.advance(2);
  EXPECT_TRUE(promised.hearAnything().has_alive());
}

TEST_F(ReserveTest, WhoWaitsGetsThePlaceOfALaterLoss) {
  ScriptedMember again = repeated(0);
  members_[1].hangUp();
  ASSERT_TRUE(clock_.advanceUntil([&] { return c_->count([](const wire::Event& e) { return e.has_lost(); }) == 1; }));
  control::ToMember m;
  while (!m.has_place()) m = again.hear();
  EXPECT_EQ(m.place().number(), 1);
}

// In one stage Spark starts an attempt only when it has given the one before up.
TEST_F(ReserveTest, ALaterAttemptOfTheSameTaskTakesItsPlace) {
  ScriptedMember again(c_->address(), 1);
  again.hello.set_attempt(1);
  again.sayHello();
  EXPECT_TRUE(c_->saw([](const wire::Event& e) { return e.has_lost() && e.lost().replaced(); }));
}

TEST_F(ReserveTest, WhoComesWhenItsWorkIsDoneWaitsForTheEnd) {
  members_[1].sayFinished("one");
  settle();
  members_[1].hangUp();
  ScriptedMember again = repeated(1);
  for (const size_t w : {0, 2}) members_[w].sayFinished("one");
  EXPECT_TRUE(again.hear().has_bye());
  EXPECT_EQ(losses(), 0u);
}

TEST_F(ReserveTest, WhoComesWhenItsWorkIsDoneIsThereWhenItIsDoneAnew) {
  members_[1].sayFinished("one");
  settle();
  members_[1].hangUp();
  ScriptedMember again = repeated(1);
  members_[0].hangUp();  // before its model is there
  ASSERT_TRUE(members_[2].hear().has_regroup());
  ASSERT_TRUE(clock_.advanceUntil([&] { return again.spokenTo(); }));
  const control::ToMember m = again.hear();
  ASSERT_TRUE(m.has_place()) << m.ShortDebugString();
}

TEST_F(ReserveTest, AFullDiskOfOneMemberIsALoss) {
  members_[1].sayFailed("the disk is full", name(ErrorKind::kIo), 7);
  EXPECT_TRUE(c_->saw([](const wire::Event& e) { return e.has_lost() && e.lost().worker() == 1; }));
  EXPECT_FALSE(c_->over());
  for (const size_t w : {0, 2}) members_[w].hangUp();  // its host ends them all for that
  ASSERT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
  ASSERT_TRUE(c_->error());
  EXPECT_NE(std::string(c_->error()->what()).find("the disk is full"), std::string::npos) << c_->error()->what();
}

class WhileGathering : public ReserveTest {
  void SetUp() override {
    for (int w = 0; w < 3; ++w) {
      members_.emplace_back(c_->address(), w);
      members_.back().sayHello();
      ASSERT_TRUE(c_->saw([w](const wire::Event& e) { return e.has_joined() && e.joined().worker() == w; }));
    }
  }
};

// An executor is lost before all are ready, and rows of the others with it.
TEST_F(WhileGathering, TheFirstTaskOfARepeatedStageGetsThePlaceThatIsEmpty) {
  members_[2].hangUp();
  ASSERT_TRUE(c_->saw([](const wire::Event& e) { return e.has_lost() && e.lost().worker() == 2; }));
  ScriptedMember again = repeated(0);
  ASSERT_TRUE(clock_.advanceUntil([&] { return again.spokenTo(); }));
  const control::ToMember place = again.hear();
  ASSERT_TRUE(place.has_place()) << place.ShortDebugString();
  EXPECT_EQ(place.place().number(), 2);
  again.hangUp();
  ScriptedMember moved = repeated(2, 0), own = repeated(2);
  for (const size_t w : {0, 1}) members_[w].sayReady();
  for (ScriptedMember* m : {&members_[0], &members_[1], &moved}) EXPECT_TRUE(m->hear().has_start());
  clock_.advance(2);
  EXPECT_TRUE(own.hearAnything().has_alive()) << "it is in reserve";
  EXPECT_EQ(losses(), 1u);
}

}  // namespace
}  // namespace crema::cluster
