// What the coordinator knows about its workers, and how messages name them.
#include "cluster/roster.h"

#include <gtest/gtest.h>

#include "support/hand_clock.h"
#include "support/message_of.h"

namespace crema::cluster {
namespace {

using crema::test::kPatience;
using crema::test::messageOf;

Roster three() {
  Roster roster(5, 3);  // worker floor(3 r / 5) owns rank r
  for (int w = 0; w < 3; ++w) {
    Member& m = roster.members[static_cast<size_t>(w)];
    m.hello.set_host("a 10.0.0.3"), m.hello.set_pid(70 + w);
    m.records = "100 records", m.digest = "weights";
  }
  return roster;
}

TEST(Roster, NamesAWorkerByItsRanksHostAndProcess) {
  const Roster one(3, 3);
  EXPECT_EQ(one.describe(1), "worker 1 (rank 1, host , pid 0)");
  const Roster roster = three();
  EXPECT_EQ(roster.describe(0), "worker 0 (ranks 0 to 1, host a 10.0.0.3, pid 70)");
  EXPECT_EQ(roster.describe(2), "worker 2 (rank 4, host a 10.0.0.3, pid 72)");
}

TEST(Roster, RefusesMoreWorkersThanRanks) {
  EXPECT_THROW(Roster(1, 2), Error);
  EXPECT_THROW(Roster(1, 0), Error);
}

TEST(Roster, NamesWhoIsMissingAndHowFarItCame) {
  Roster roster = three();
  roster.members[0].ready = true;
  const Socket listener = Socket::listenOn("127.0.0.1", 0);
  roster.members[2].channel =
      std::make_shared<Channel>(Socket::connectTo(listener.address(), Deadline::after(kPatience), nullptr));
  EXPECT_EQ(roster.missing(), "worker 1, worker 2 (joined, not ready)");
  EXPECT_EQ(roster.count(&Member::ready), 1);
  EXPECT_EQ(roster.count(&Member::finished), 0);
  EXPECT_EQ(roster.find(roster.members[2].channel), 2);
  EXPECT_EQ(roster.find(std::make_shared<Channel>(Socket())), -1);
}

TEST(Roster, IsLateWhereSomebodyNeitherIsReadyNorHasRowsPrepared) {
  Roster roster = three();
  EXPECT_TRUE(roster.late(100));
  for (auto& m : roster.members) m.ready = true;
  EXPECT_FALSE(roster.late(100));
  roster.members[1].ready = false, roster.members[1].prepared = 99;
  EXPECT_TRUE(roster.late(100));
  roster.members[1].prepared = 101;
  EXPECT_FALSE(roster.late(100));
}

TEST(Roster, ItsStepIsTheLatestOne) {
  Roster roster = three();
  EXPECT_EQ(roster.latestBeat(), 0);
  roster.members[1].beat.set_iteration(8), roster.members[2].beat.set_iteration(7);
  EXPECT_EQ(roster.latestBeat(), 8);
}

TEST(Roster, OtherRecordsOrWeightsAreReportedWithBothWorkers) {
  Roster roster = three();
  EXPECT_EQ(messageOf([&] { roster.compare(); }), "no error");
  roster.members[2].digest = "others";
  EXPECT_EQ(messageOf([&] { roster.compare(); }),
            "worker 2 (rank 4, host a 10.0.0.3, pid 72) starts from other weights than worker 0 (ranks 0 to 1, "
            "host a 10.0.0.3, pid 70); give all workers the same -weights or -snapshot");
  roster.members[2].records = "99 records";
  EXPECT_EQ(messageOf([&] { roster.compare(); }),
            "worker 2 (rank 4, host a 10.0.0.3, pid 72) reads other records than worker 0 (ranks 0 to 1, host a "
            "10.0.0.3, pid 70): 99 records against 100 records; copy the same database to all machines");
}

}  // namespace
}  // namespace crema::cluster
