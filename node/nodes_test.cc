// A run of nodes as their coordinator leads it: reservations, questions, notes, and an end that the host asks for.
#include "node/nodes.h"

#include <unistd.h>

#include <list>

#include "node.pb.h"
#include "support/coordinator_ends.h"

namespace crema::node {
namespace {

using cluster::test::RunningCoordinator;
using cluster::test::ScriptedMember;

std::string aboutOf(const std::string& role, int number = -1) {
  wire::NodeAbout about;
  about.set_role(role);
  if (number >= 0) about.set_number(number);
  return about.SerializeAsString();
}

class NodesTest : public testing::Test {
 protected:
  explicit NodesTest(int members = 2) {
    cluster::CoordinatorOptions o;
    o.secret = cluster::test::kToken, o.members = members, o.joinTimeout = 60, o.stepTimeout = 10,
    o.placesReturn = true;
    c_ = std::make_unique<RunningCoordinator>(o, std::make_unique<Nodes>());
  }
  // A member that stays, or that only reserves its place.
  ScriptedMember& join(const std::string& role, bool brief = false) {
    members_.emplace_back(c_->address(), -1);
    ScriptedMember& m = members_.back();
    m.hello.clear_job_digest();
    m.hello.set_about(aboutOf(role)), m.hello.set_brief(brief);
    m.sayHello();
    EXPECT_TRUE(c_->saw([&](const wire::Event& e) { return e.joined().about() == aboutOf(role); }));
    return m;
  }
  // An attempt of the node of that number, which knows when it has joined.
  ScriptedMember& attempt(int number, int attempt, bool refused = false) {
    members_.emplace_back(c_->address(), -1);
    ScriptedMember& m = members_.back();
    m.hello.clear_job_digest();
    m.hello.set_about(aboutOf(fmt::format("worker:{}", number), number)), m.hello.set_attempt(attempt);
    m.hello.set_host(fmt::format("h{}.{}", number, attempt));
    m.sayHello();
    if (!refused) {
      EXPECT_TRUE(c_->saw([&](const wire::Event& e) { return e.joined().host() == m.hello.host(); }));
      m.sayReady("", "");
    }
    return m;
  }
  void expectStart(ScriptedMember& first, ScriptedMember& second) {
    EXPECT_TRUE(first.hear().has_start());
    EXPECT_TRUE(second.hear().has_start());
    for (ScriptedMember* m : {&first, &second}) m->sayFinished("");
    c_->coordinator().askForEnd();
    for (ScriptedMember* m : {&first, &second}) {
      EXPECT_TRUE(m->hear().has_bye());
      m->hangUp();
    }
    EXPECT_TRUE(crema::test::soon([&] { return c_->over(); }));
    EXPECT_FALSE(c_->error());
  }
  control::ToMember answerTo(ScriptedMember& m, bool wait = false) {
    control::ToCoordinator query;
    query.mutable_query()->set_wait(wait);
    m.say(query);
    return wait ? control::ToMember() : m.hear();
  }
  // One thread, so that members_ does not move what join() returned.
  crema::test::HandClock clock_;
  std::list<ScriptedMember> members_;
  std::unique_ptr<RunningCoordinator> c_;
};

TEST_F(NodesTest, LearnEachOtherInTheOrderOfTheirPlaces) {
  ScriptedMember &a = join("worker:1"), &b = join("chief:0");
  a.sayReady("", ""), b.sayReady("", "");
  const auto start = a.hear().start();
  EXPECT_EQ(start.member(), 0);
  EXPECT_EQ(start.about(0), aboutOf("worker:1"));
  EXPECT_EQ(start.about(1), aboutOf("chief:0"));
  EXPECT_EQ(b.hear().start().member(), 1);
  wire::Note note;
  note.set_text("to all");
  c_->coordinator().send(note);
  for (ScriptedMember* m : {&a, &b}) EXPECT_EQ(m->hear().note().text(), "to all");
  control::ToCoordinator said;
  said.mutable_report()->mutable_note()->set_text("of one");
  b.say(said);
  EXPECT_TRUE(c_->saw([](const wire::Event& e) { return e.note().text() == "of one"; }));
  a.sayFinished("");
  EXPECT_FALSE(c_->over());
  b.sayFinished("");
  c_->coordinator().askForEnd();
  for (ScriptedMember* m : {&a, &b}) {
    EXPECT_TRUE(m->hear().has_bye());
    m->hangUp();
  }
  EXPECT_TRUE(crema::test::soon([&] { return c_->over(); }));
  EXPECT_FALSE(c_->error());
}

TEST_F(NodesTest, GoOnUntilTheHostAsksForTheEnd) {
  ScriptedMember &a = join("worker:0"), &b = join("worker:1");
  for (ScriptedMember* m : {&a, &b}) m->sayReady("", "");
  for (ScriptedMember* m : {&a, &b}) EXPECT_TRUE(m->hear().has_start());
  c_->coordinator().askForEnd();
  a.sayFinished("");
  control::ToCoordinator said;
  said.mutable_report()->mutable_note()->set_text("still here");
  b.say(said);
  EXPECT_TRUE(c_->saw([](const wire::Event& e) { return e.note().text() == "still here"; }));
  EXPECT_FALSE(c_->over());
  b.sayFinished("");
  for (ScriptedMember* m : {&a, &b}) {
    EXPECT_TRUE(m->hear().has_bye());
    m->hangUp();
  }
  EXPECT_TRUE(crema::test::soon([&] { return c_->over(); }));
}

// Programs of others may need a server until they have ended, whenever the host asks for the end.
TEST_F(NodesTest, ServersEndWhenNobodyElseGoesOn) {
  wire::NodeAbout serves;
  serves.set_role("ps:0"), serves.set_serves(true);
  ScriptedMember &worker = join("worker:0"), server(c_->address(), -1);
  server.hello.clear_job_digest();
  server.hello.set_about(serves.SerializeAsString());
  server.sayHello();
  for (ScriptedMember* m : {&worker, &server}) m->sayReady("", "");
  for (ScriptedMember* m : {&worker, &server}) EXPECT_TRUE(m->hear().has_start());
  c_->coordinator().askForEnd();
  wire::Note note;
  note.set_text("behind that");
  c_->coordinator().send(note);
  EXPECT_EQ(server.hear().note().text(), "behind that");
  worker.sayFinished("");
  wire::NodeNote said;
  ASSERT_TRUE(said.ParseFromString(server.hear().note().text()));
  EXPECT_TRUE(said.has_end_servers());
  server.sayFinished("");
  EXPECT_TRUE(server.hear().has_bye());
  for (ScriptedMember* m : {&worker, &server}) m->hangUp();
  EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
  EXPECT_FALSE(c_->error());
}

// A reservation stays when who made it goes, and has no heartbeat to miss.
TEST_F(NodesTest, ReservationsNeedNobodyToStay) {
  join("first", true).hangUp();
  ScriptedMember& second = join("second", true);
  const auto members = answerTo(second).members();
  EXPECT_TRUE(members.complete());
  ASSERT_EQ(members.about_size(), 2);
  EXPECT_EQ(members.about(0), aboutOf("first"));
  clock_.advance(1000);
  EXPECT_FALSE(c_->over());
  ScriptedMember third(c_->address(), -1);
  third.hello.clear_job_digest();
  third.sayHello();
  EXPECT_EQ(third.hearAbort(), "invalid: all 2 nodes are here already: more have been started than the run has places");
  c_->coordinator().askForEnd();
  EXPECT_TRUE(crema::test::soon([&] { return c_->over(); }));
  EXPECT_FALSE(c_->error());
}

TEST_F(NodesTest, WhoWaitsForAllIsAnsweredWhenTheyAreHere) {
  ScriptedMember& first = join("first", true);
  EXPECT_FALSE(answerTo(first).members().complete());
  answerTo(first, true);
  join("second", true);
  EXPECT_EQ(first.hear().members().about_size(), 2);
  c_->coordinator().askForEnd();
}

TEST_F(NodesTest, ALostOneIsNamedByItsRole) {
  ScriptedMember &a = join("worker:0"), &b = join("ps:0");
  for (ScriptedMember* m : {&a, &b}) m->sayReady("", "");
  for (ScriptedMember* m : {&a, &b}) EXPECT_TRUE(m->hear().has_start());
  b.hangUp();
  EXPECT_TRUE(clock_.advanceUntil([&] { return a.spokenTo(); }));
  const std::string abort = a.hearAbort();
  EXPECT_EQ(abort.rfind("peer: node 1 (ps:0, host h-1, pid 99) was lost: ", 0), 0u) << abort;
  EXPECT_NE(abort.find("run it again, from the program's last checkpoint"), std::string::npos) << abort;
  a.hangUp();
  EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
}

// Nothing has been computed then: Spark's next attempt of its task joins in its place.
TEST_F(NodesTest, BeforeAllAreThereALostOneLeavesItsPlace) {
  attempt(1, 0).hangUp();
  EXPECT_TRUE(c_->saw([](const wire::Event& e) { return e.lost().story().find("node 1 (worker:1") == 0; }));
  ScriptedMember& a = attempt(0, 0);
  EXPECT_FALSE(c_->over());
  expectStart(a, attempt(1, 1));
}

TEST_F(NodesTest, ALaterAttemptTakesThePlaceOfOneThatIsStillThere) {
  ScriptedMember &cutOff = attempt(1, 1), &late = attempt(1, 0, true);
  EXPECT_EQ(late.hearAbort(), "peer: node 1 is already here (host h1.1, pid 99)");
  ScriptedMember& b = attempt(1, 2);
  EXPECT_EQ(cutOff.hearAbort().find("peer: this node was given up, and the run goes on without it: node 1"), 0u);
  expectStart(attempt(0, 0), b);
}

TEST_F(NodesTest, MissingOnesEndTheRunForAll) {
  ScriptedMember& a = join("worker:0");
  a.sayReady("", "");
  control::ToCoordinator beat;
  beat.mutable_beat()->set_waiting(true);
  control::ToMember heard;
  EXPECT_TRUE(crema::test::soon([&] {
    clock_.advance(0.2);  // slowly: on a busy machine the beat may be read later
    a.say(beat);
    if (a.spokenTo()) heard = a.hearAnything();
    return heard.has_abort();
  }));
  EXPECT_EQ(heard.abort().story().rfind("2 nodes wanted, 1 here; waited 60 s; missing: node 1. Free", 0), 0u)
      << heard.abort().story();
  a.hangUp();
  EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
}

}  // namespace
}  // namespace crema::node
