// Single courses of a run that membership_explorer_test.cc does not go through: more members, and who of them is given up.
#include "cluster/membership.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace crema::cluster {
namespace {

using Say = Membership::Say;
using Seat = Membership::Seat;

class MembershipTest : public testing::Test {
 protected:
  void begin(const Membership::Rules& rules) {
    m_ = std::make_unique<Membership>(rules);
    for (int s = 0; s < rules.seats; ++s) m_->joined(s), m_->ready(s);
    EXPECT_EQ(m_->next(false), Say::kStart);
  }
  void begin(int seats) { begin({seats, 0, Replacement::kGoOn, true}); }
  // The first one that complains makes all leave, with the state before step `at`.
  void trouble(int64_t at, const std::vector<std::pair<int, Unreached>>& complaints) {
    const uint32_t generation = m_->generation();
    bool asked = false;
    for (const auto& [seat, others] : complaints) {
      m_->paused(seat, generation, seat == newcomer_ ? Membership::kNewcomer : at, others);
      if (!std::exchange(asked, true)) {
        EXPECT_EQ(m_->next(false), Say::kRegroup);
      }
    }
    for (const int s : m_->members())
      if (m_->seat(s) == Seat::kRunning) m_->paused(s, generation, s == newcomer_ ? Membership::kNewcomer : at);
  }

  std::unique_ptr<Membership> m_;
  int newcomer_ = -1;
};

// A replacement in seat 0 whose port is closed: whoever complains, it is that one, and not the others that have a state.
TEST_F(MembershipTest, ANewcomerThatNobodyReachesIsGivenUp) {
  begin(8);
  m_->left(0);
  EXPECT_EQ(m_->next(false), Say::kRegroup);
  for (int s = 1; s < 8; ++s) m_->paused(s, 1, 5);
  EXPECT_EQ(m_->next(false), Say::kStart);
  m_->joined(0), m_->ready(0);
  EXPECT_EQ(m_->next(false), Say::kBorder);
  for (int s = 1; s < 8; ++s) m_->paused(s, 2, 6);
  EXPECT_EQ(m_->next(false), Say::kStart);
  newcomer_ = 0;
  for (int round = 0; round < 3; ++round) {
    trouble(6, {{7, {{0}}}});
    EXPECT_EQ(m_->next(false), round < 2 ? Say::kStart : Say::kGiveUp) << round;
  }
  EXPECT_EQ(m_->evicted(), 0);
  m_->left(0);
  EXPECT_EQ(m_->next(false), Say::kStart) << "the others go on";
  EXPECT_EQ(m_->members().size(), 7u);
}

// Members whose connections end because others have left are not what is wrong.
TEST_F(MembershipTest, WhoOnlySeesOthersLeaveBlamesNobody) {
  begin(4);
  for (int round = 0; round < 3; ++round) {
    trouble(9, {{3, {{0}}}, {1, {{3}, true}}, {2, {{1}, true}}});
    EXPECT_EQ(m_->next(false), round < 2 ? Say::kStart : Say::kGiveUp) << round;
  }
  EXPECT_EQ(m_->evicted(), 3) << "the last of the two that cannot reach each other";
}

TEST_F(MembershipTest, TheOneWithMostBrokenLinksIsGivenUp) {
  begin(4);
  for (int round = 0; round < 3; ++round) {
    trouble(9, {{1, {{0}}}, {2, {{1}}}, {3, {{1}}}});
    EXPECT_EQ(m_->next(false), round < 2 ? Say::kStart : Say::kGiveUp) << round;
  }
  EXPECT_EQ(m_->evicted(), 1);
}

// Packets between 1 and 2 are lost in the middle of a step: all wait for both, and connecting shows who it is.
TEST_F(MembershipTest, WhoWaitsForTwoIsNotTheCause) {
  begin(3);
  trouble(9, {{0, {{1, 2}}}});
  EXPECT_EQ(m_->next(false), Say::kStart);
  for (int round = 1; round < 3; ++round) {
    trouble(9, {{2, {{1}}}});
    EXPECT_EQ(m_->next(false), round < 2 ? Say::kStart : Say::kGiveUp) << round;
  }
  EXPECT_NE(m_->evicted(), 0);
}

TEST_F(MembershipTest, AStepInBetweenIsNoTrouble) {
  begin(2);
  for (int64_t at = 1; at < 20; ++at) {
    trouble(at, {{1, {{0}, true}}});
    EXPECT_EQ(m_->next(false), Say::kStart) << at;
  }
}

// Whatever the reasons are, a run does not go round for ever.
TEST_F(MembershipTest, WithoutAStepAndAReasonOneIsGivenUpAsWell) {
  begin(2);
  int rounds = 0;
  do trouble(1, {{1, {}}});
  while (m_->next(false) == Say::kStart && ++rounds < 10);
  EXPECT_EQ(rounds, 3);
  EXPECT_EQ(m_->evicted(), 1);
}

TEST_F(MembershipTest, OtherSharesComeBehindAStep) {
  begin(2);
  m_->divideAnew();
  EXPECT_EQ(m_->next(false), Say::kBorder);
  EXPECT_EQ(m_->next(false), Say::kNothing) << "it is said once";
  m_->divideAnew();
  m_->paused(0, 1, 5), m_->paused(1, 1, 5);
  EXPECT_EQ(m_->next(false), Say::kStart);
  EXPECT_EQ(m_->members(), (std::vector<int>{0, 1}));
  EXPECT_EQ(m_->next(false), Say::kNothing) << "the second request was for the generation that has ended";
}

TEST_F(MembershipTest, ALossBeforeTheBorderIsALoss) {
  begin(3);
  m_->divideAnew();
  EXPECT_EQ(m_->next(false), Say::kBorder);
  m_->left(1);
  EXPECT_EQ(m_->next(false), Say::kRegroup);
  m_->paused(0, 1, 5), m_->paused(2, 1, 5);
  EXPECT_EQ(m_->next(false), Say::kStart);
  EXPECT_EQ(m_->members(), (std::vector<int>{0, 2}));
}

TEST_F(MembershipTest, WhereEachHasItsRowsSharesStay) {
  begin({2, 0, Replacement::kGoOn, false});
  m_->divideAnew();
  EXPECT_EQ(m_->next(false), Say::kNothing);
}

TEST_F(MembershipTest, BehindTheLastStepNothingIsDivided) {
  begin(2);
  m_->divideAnew();
  EXPECT_EQ(m_->next(false), Say::kBorder);
  m_->finished(1), m_->finished(0);
  EXPECT_EQ(m_->next(false), Say::kOver);
}

TEST_F(MembershipTest, ALossBehindTheModelIsTheEnd) {
  begin(3);
  m_->finished(2), m_->finished(0);
  m_->left(1);
  EXPECT_EQ(m_->next(false), Say::kOver);
}

TEST_F(MembershipTest, ALossBeforeTheModelIsNot) {
  begin(3);
  m_->finished(2), m_->finished(1);
  m_->left(0);
  EXPECT_EQ(m_->next(false), Say::kRegroup) << "another one must write it";
}

// What had been finished is done anew, by whoever is there then.
TEST_F(MembershipTest, WhoHasFinishedAndIsGoneIsReplacedWhereAllComputeAgain) {
  begin({3, 0, Replacement::kGoOn, false});
  EXPECT_TRUE(m_->finished(1));
  m_->left(1);
  EXPECT_EQ(m_->seat(1), Seat::kGone);
  EXPECT_TRUE(m_->finished(2));
  m_->left(0);
  EXPECT_EQ(m_->next(false), Say::kRegroup);
  EXPECT_EQ(m_->seat(1), Seat::kEmpty);
  EXPECT_FALSE(m_->finished(2)) << "it is to leave at once";
  for (const int s : {0, 1}) m_->joined(s), m_->ready(s);
  EXPECT_EQ(m_->next(false), Say::kNothing) << "it has not";
  m_->paused(2, 1, 9);
  EXPECT_EQ(m_->next(false), Say::kStart);
  EXPECT_EQ(m_->members(), (std::vector<int>{0, 1, 2}));
}

TEST_F(MembershipTest, WhoIsLostWhileAllAreToComputeAgainIsALoss) {
  begin({3, 0, Replacement::kGoOn, true});
  EXPECT_TRUE(m_->finished(2));
  m_->left(0);
  EXPECT_EQ(m_->next(false), Say::kRegroup);
  m_->left(2);
  EXPECT_EQ(m_->seat(2), Seat::kEmpty);
  m_->paused(1, 1, 9);
  EXPECT_EQ(m_->next(false), Say::kStart);
  EXPECT_EQ(m_->members(), std::vector<int>{1});
}

TEST_F(MembershipTest, ALossBehindTheModelIsTheEndAlsoWhereEachHasItsRows) {
  begin({2, 0, Replacement::kGoOn, false});
  m_->finished(0);
  m_->left(1);
  EXPECT_EQ(m_->next(false), Say::kOver);
}

}  // namespace
}  // namespace crema::cluster
