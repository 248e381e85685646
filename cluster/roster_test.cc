// What the coordinator knows about its members, and how messages name them.
#include "cluster/roster.h"

#include <gtest/gtest.h>

#include "support/hand_clock.h"

namespace crema::cluster {
namespace {

using crema::test::kPatience;

Roster three() {
  const auto port = [](int member, const control::ToCoordinator::Hello& hello) {
    return fmt::format("part {} at {}", member + 1, hello.data_address());
  };
  Roster roster(3, {"node", "program", port});
  for (int i = 0; i < 3; ++i) {
    auto& hello = roster.members[static_cast<size_t>(i)].hello;
    hello.set_host("a 10.0.0.3"), hello.set_pid(70 + i), hello.set_data_address("b:7");
  }
  return roster;
}

TEST(Roster, NamesAMemberByItsPartHostAndProcess) {
  EXPECT_EQ(three().describe(2), "node 2 (part 3 at b:7, host a 10.0.0.3, pid 72)");
}

TEST(Roster, NamesMembersByTheirOwnNumbersWhereTheyComeInAnyOrder) {
  Roster roster(3, {"node", "program", [](int, const auto& hello) { return hello.about(); }, false,
                    [](int, const auto& hello) { return hello.pid() - 70; }});
  auto& first = roster.members[0];
  first.hello.set_version(CREMA_VERSION), first.hello.set_pid(72), first.hello.set_about("worker:1");
  first.ready = true;
  EXPECT_EQ(roster.describe(0), "node 2 (worker:1, host , pid 72)");
  EXPECT_EQ(roster.missing(), "node 0, node 1");
}

TEST(Roster, SaysWhyOneCannotJoin) {
  Roster roster = three();
  control::ToCoordinator::Hello hello;
  hello.set_version(CREMA_VERSION), hello.set_member(1), hello.set_job_digest("job");
  EXPECT_EQ(roster.refusal(hello, "job"), "");
  EXPECT_EQ(roster.refusal(hello, "another"),
            "node 1 has a different job than the coordinator: start all with the same program");
  EXPECT_EQ(roster.occupied(1), "");
  roster.members[1].finished = true;
  EXPECT_EQ(roster.occupied(1), "node 1 is already here (host a 10.0.0.3, pid 71)");
  for (const int wrong : {-2, 3}) {
    hello.set_member(wrong);
    EXPECT_EQ(roster.refusal(hello, "job"), fmt::format("there is no node {}; this run has nodes 0 to 2", wrong));
  }
  hello.set_member(-1);
  EXPECT_EQ(roster.place(hello), 0u) << "nobody has said hello as that one";
  EXPECT_EQ(roster.refusal(hello, "job"), "");
  for (Member& m : roster.members) m.hello.set_version(CREMA_VERSION);
  EXPECT_EQ(roster.refusal(hello, "job"),
            "all 3 nodes are here already: more have been started than the run has places");
  hello.set_version("0.0.1");
  EXPECT_EQ(roster.refusal(hello, "job"),
            "version 0.0.1 cannot join version " CREMA_VERSION "; use one executable everywhere");
}

TEST(Roster, NamesWhoIsMissingAndHowFarItCame) {
  Roster roster = three();
  roster.members[0].ready = true;
  const Socket listener = Socket::listenOn("127.0.0.1", 0);
  roster.members[2].channel =
      std::make_shared<Channel>(Socket::connectTo(listener.address(), Deadline::after(kPatience), nullptr));
  EXPECT_EQ(roster.missing(), "node 1, node 2 (joined, not ready)");
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
  EXPECT_EQ(roster.latestStep(), 0);
  roster.members[1].beat.set_iteration(8), roster.members[2].beat.set_iteration(7);
  EXPECT_EQ(roster.latestStep(), 8);
}

}  // namespace
}  // namespace crema::cluster
