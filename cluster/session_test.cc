// A member's connection to the coordinator; the test plays the coordinator with a Doorman.
#include "cluster/session.h"

#include <gtest/gtest.h>

#include <future>

#include "base/file.h"
#include "cluster/doorman.h"
#include "support/coordinator_ends.h"
#include "support/message_of.h"
#include "support/settle.h"
#include "support/shared_data.h"

namespace crema::cluster {
namespace {

using crema::test::HandClock;
using crema::test::kPatience;
using crema::test::messageOf;
using crema::test::settle;
using crema::test::soon;

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    options_.coordinator = doorman_.address(), options_.secret = test::kToken, options_.member = "worker 2";
    options_.joinTimeout = 60, options_.stepTimeout = 10;
  }
  // Joins, and returns when Hello has come.
  void join() {
    control::ToCoordinator::Hello hello;
    hello.set_member(2), hello.set_attempt(3);
    session_ = std::make_unique<Session>(options_, hello, interrupt_, &host_);
    const auto in = next();
    EXPECT_EQ(in.message.hello().member(), 2);
    worker_ = in.from;
  }
  // The next message that is no heartbeat; the clock stands still meanwhile.
  Doorman::Incoming next() {
    for (;;) {
      std::optional<Doorman::Incoming> in;
      EXPECT_TRUE(soon([&] { return (in = doorman_.next(Deadline::after(0), nullptr)).has_value(); }));
      if (!in) return {};
      if (!in->message.has_beat()) return *in;
      beats_.push_back(in->message.beat());
    }
  }
  void say(const std::function<void(control::ToMember&)>& what) {
    control::ToMember m;
    what(m);
    worker_->send(m, Deadline::after(kPatience));
  }
  void sayAbort(const std::string& message, const std::string& kind) {
    say([&](auto& m) { m.mutable_abort()->set_story(message), m.mutable_abort()->set_kind(kind); });
  }
  static bool over(const std::future<std::string>& f) {
    return f.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  // Runs `call` in a thread of its own and gives what messageOf() says about it.
  static std::future<std::string> later(const std::function<void()>& call) {
    return std::async(std::launch::async, [call] { return messageOf(call); });
  }

  HandClock clock_;
  Doorman doorman_{"127.0.0.1", 0, test::kToken};
  SessionOptions options_;
  HostActivity host_;
  Interrupt interrupt_;
  std::shared_ptr<Channel> worker_;  // the coordinator's end
  std::vector<control::ToCoordinator::Beat> beats_;
  std::unique_ptr<Session> session_;
};

TEST_F(SessionTest, SaysHelloReadyReportFinishedAndHearsBye) {
  join();
  session_->ready("weights", "100 records");
  const auto ready = next().message.ready();
  EXPECT_EQ(ready.state_digest(), "weights");
  EXPECT_EQ(ready.records(), "100 records");
  say([](auto& m) { m.mutable_start()->set_generation(4), m.mutable_start()->add_peers("1.2.3.4:5"); });
  session_->waiting = true;  // as it was when an error ended an exchange
  const auto start = session_->waitForStart();
  EXPECT_EQ(start.generation(), 4u);
  EXPECT_FALSE(session_->waiting) << "else nobody would notice that it hangs";
  EXPECT_EQ(start.peers(0), "1.2.3.4:5");
  wire::Event event;
  event.mutable_progress()->set_iteration(8);
  session_->report(event);
  EXPECT_EQ(next().message.report().progress().iteration(), 8);
  session_->finished(10, "state");
  const auto finished = next().message.finished();
  EXPECT_EQ(finished.iteration(), 10);
  EXPECT_EQ(finished.state_digest(), "state");
  const auto bye = later([&] { EXPECT_TRUE(session_->waitForBye()); });
  settle();
  EXPECT_FALSE(over(bye));
  say([](auto& m) { m.mutable_bye(); });
  EXPECT_TRUE(soon([&] { return over(bye); }));
  session_.reset();
  EXPECT_NE(next().lost, "");
  EXPECT_FALSE(interrupt_.raised());
}

TEST_F(SessionTest, AStartMayComeLateAsLongAsTheCoordinatorLives) {
  join();
  const auto start = later([&] { (void)session_->waitForStart(); });
  for (int i = 0; i < 12; ++i) {  // 108 s
    say([](auto& m) { m.mutable_alive(); });
    settle();
    clock_.advance(9);
    EXPECT_FALSE(over(start));
  }
  say([](auto& m) { m.mutable_start(); });
  ASSERT_TRUE(soon([&] { return over(start); }));
  EXPECT_FALSE(interrupt_.raised());
}

TEST_F(SessionTest, BeatsEverySecondWithWhatTheTrainingThreadWrites) {
  join();
  session_->iteration = 7, session_->passes = 20, session_->waiting = true, session_->computeSeconds = 1.5;
  host_.arrived = 3, host_.preparing = 2;
  control::ToCoordinator::Spent spent;
  spent.set_passes(14), spent.set_steps(7);
  session_->spent(spent);
  const auto beats = [&] {
    for (;;) {
      const auto in = doorman_.next(Deadline::after(0), nullptr);
      if (!in) return beats_.size();
      if (in->message.has_beat()) beats_.push_back(in->message.beat());
    }
  };
  settle();
  clock_.advance(0.9);
  settle();
  EXPECT_EQ(beats(), 0u);
  for (size_t second = 1; second <= 4; ++second) {
    clock_.advance(1);
    EXPECT_TRUE(soon([&] { return beats() == second; })) << second;
    settle();
  }
  const auto& b = beats_.back();
  EXPECT_EQ(b.iteration(), 7);
  EXPECT_EQ(b.passes(), 23) << "what comes from the host is progress";
  EXPECT_EQ(b.preparing(), 2);
  EXPECT_TRUE(b.waiting());
  EXPECT_EQ(b.compute_seconds(), 1.5);
  EXPECT_EQ(b.spent().passes(), 14);
}

TEST_F(SessionTest, AnAbortInterruptsEverythingWithTheCoordinatorsError) {
  join();
  const auto start = later([&] { (void)session_->waitForStart(); });
  sayAbort("worker 1 is lost\n  somewhere", "data");
  ASSERT_TRUE(soon([&] { return over(start); }));
  EXPECT_EQ(messageOf([&] { interrupt_.check(); }), "worker 1 is lost\n  somewhere");
  const auto message = session_->coordinatorsError(0);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->kind(), ErrorKind::kData);
  EXPECT_EQ(messageOf([&] { (void)session_->waitForBye(); }), "worker 1 is lost\n  somewhere");
}

TEST_F(SessionTest, ASilentCoordinatorIsGoneAfterTheStepTimeout) {
  join();
  settle();
  clock_.advance(9.9);
  settle();
  EXPECT_FALSE(interrupt_.raised());
  clock_.advance(0.2);
  ASSERT_TRUE(soon([&] { return interrupt_.raised(); }));
  EXPECT_EQ(messageOf([&] { interrupt_.check(); }),
            "the coordinator is gone: recv from the coordinator at " + doorman_.address() +
                ": nothing happened before the deadline; the driver ended, was killed or is cut off. See its log");
  EXPECT_EQ(session_->coordinatorsError(0)->kind(), ErrorKind::kPeer);
}

TEST_F(SessionTest, AnErrorIsWaitedForAsLongAsIsSaid) {
  join();
  const auto none = later([&] { EXPECT_FALSE(session_->coordinatorsError(5)); });
  settle();
  clock_.advance(4.9);
  settle();
  EXPECT_FALSE(over(none));
  clock_.advance(0.2);
  EXPECT_TRUE(soon([&] { return over(none); }));
  const auto one = later([&] { EXPECT_TRUE(session_->coordinatorsError(5)); });
  sayAbort("worker 1 is lost", "peer");
  EXPECT_TRUE(soon([&] { return over(one); })) << "before its time, as the error has come";
}

TEST_F(SessionTest, TellsWhatFailedAndWhere) {
  join();
  session_->iteration = 12;
  Error error(ErrorKind::kData, "record 7 is damaged");
  error.addFrame("in layer 'data'");
  session_->failed(error);
  const auto failed = next().message.failed();
  EXPECT_EQ(failed.story(), "record 7 is damaged\n  in layer 'data'");
  EXPECT_EQ(failed.kind(), "data");
  EXPECT_EQ(failed.iteration(), 12);
}

TEST_F(SessionTest, AModelIsSentInPiecesAndKept) {
  const crema::test::TemporaryFolder folder;
  std::string model((2u << 20) + 5, 'm');
  model[0] = 'a', model.back() = 'z';
  writeFileAtomically(folder.file("m"), model);
  join();
  const auto sent = later([&] { session_->sendModel(folder.file("m")); });
  std::string came;
  for (int piece = 0; piece < 3; ++piece) {
    const auto in = next();
    ASSERT_TRUE(in.message.has_piece());
    came += in.message.piece().data();
    EXPECT_EQ(in.message.piece().size(), piece == 2 ? model.size() : 0);
  }
  EXPECT_TRUE(came == model);
  EXPECT_TRUE(soon([&] { return session_->waiting.load(); })) << "its silence is the coordinator's";
  EXPECT_FALSE(over(sent));
  say([](auto& m) { m.mutable_kept()->set_whole(true); });
  EXPECT_TRUE(soon([&] { return over(sent); }));
  EXPECT_FALSE(session_->waiting);
}

// A coordinator whose disk stands would else hold a whole model.
TEST_F(SessionTest, AModelIsSentNoFasterThanItIsWritten) {
  const crema::test::TemporaryFolder folder;
  writeFileAtomically(folder.file("m"), std::string(20u << 20, 'm'));
  join();
  const auto sent = later([&] { session_->sendModel(folder.file("m")); });
  for (int piece = 0; piece < 16; ++piece) EXPECT_TRUE(next().message.has_piece());
  settle();
  EXPECT_FALSE(doorman_.next(Deadline::after(0), nullptr)) << "16 MiB are on their way";
  EXPECT_TRUE(session_->waiting) << "its silence is the coordinator's";
  say([](auto& m) { m.mutable_kept()->set_bytes(4u << 20); });
  for (int piece = 16; piece < 20; ++piece) EXPECT_TRUE(next().message.has_piece());
  EXPECT_FALSE(over(sent));
  say([](auto& m) { m.mutable_kept()->set_bytes(20u << 20), m.mutable_kept()->set_whole(true); });
  EXPECT_TRUE(soon([&] { return over(sent); }));
}

// Where the coordinator listened before, somebody refuses connections to it: the task fails, and Spark runs it elsewhere.
TEST_F(SessionTest, ARefusedConnectionIsAnErrorAndNotTheEndOfTheRun) {
  std::string address;
  {
    const Socket listener = Socket::listenOn("127.0.0.1", 0);
    address = listener.address();
  }
  options_.coordinator = address, options_.coordinatorListens = true;
  control::ToCoordinator::Hello hello;
  hello.set_attempt(3);
  const double before = monotonicSeconds();
  bool isOver = false;
  auto ended = later([&] {
    try {
      Session(options_, hello, interrupt_);
    } catch (const RunOver&) {
      isOver = true;
      throw;
    }
  });
  ASSERT_TRUE(clock_.advanceUntil([&] { return over(ended); }, 0.02));
  EXPECT_LT(monotonicSeconds() - before, 10) << "a second, not the join timeout";
  EXPECT_EQ(ended.get(),
            "cannot connect to " + address +
                ": Connection refused (111), where the coordinator listened before worker 2 was started; is "
                "a firewall between the two machines, or has the driver ended? See its log\n  while joining "
                "the coordinator at " +
                address);
  EXPECT_FALSE(isOver);
  options_.coordinatorListens = false;
  const double from = monotonicSeconds();
  auto late = later([&] { Session(options_, hello, interrupt_); });
  ASSERT_TRUE(clock_.advanceUntil([&] { return over(late); }, 0.2));
  EXPECT_GE(monotonicSeconds() - from, 59) << "it is waited for until the join timeout";
  EXPECT_EQ(late.get(), "cannot connect to " + address +
                            ": Connection refused (111)\n  while joining the coordinator at " + address);
}

TEST_F(SessionTest, AWrongTokenIsReportedAfterAFewAttempts) {
  options_.secret = "another token";
  auto ended = later([&] { Session(options_, {}, interrupt_); });
  ASSERT_TRUE(clock_.advanceUntil([&] { return over(ended); }));
  EXPECT_EQ(ended.get(), "recv from " + doorman_.address() +
                             ": connection closed\n  while proving the token; a wrong one looks like this: give both "
                             "ends the same\n  while joining the coordinator at " +
                             doorman_.address());
}

TEST(ErrorKinds, OfAnotherProcessAreTakenOverWhereTheyAreSoForAll) {
  EXPECT_EQ(kindForAll("data"), ErrorKind::kData);
  EXPECT_EQ(kindForAll("invalid"), ErrorKind::kInvalid);
  EXPECT_EQ(kindForAll("internal"), ErrorKind::kInternal);
  for (const char* ofOne : {"io", "timeout", "stopped", "something new"})
    EXPECT_EQ(kindForAll(ofOne), ErrorKind::kPeer);
}

}  // namespace
}  // namespace crema::cluster
