// The coordinator's port: messages of authenticated clients arrive, those of others do not, and a full queue makes
// senders wait.
#include "cluster/doorman.h"

#include <gtest/gtest.h>

#include "base/handshake.h"
#include "support/coordinator_ends.h"
#include "support/message_of.h"
#include "support/settle.h"

namespace crema::cluster {
namespace {

using crema::test::HandClock;
using crema::test::kPatience;
using crema::test::messageOf;
using crema::test::settle;
using crema::test::soon;
using test::kToken;
using test::ScriptedMember;

class DoormanTest : public testing::Test {
 protected:
  std::optional<Doorman::Incoming> next(double seconds = kPatience) {
    return doorman_.next(Deadline::after(seconds), nullptr);
  }
  Socket unauthenticated() const { return Socket::connectTo(doorman_.address(), Deadline::after(kPatience), nullptr); }

  Doorman doorman_{"127.0.0.1", 0, kToken};
};

TEST_F(DoormanTest, WhoHoldsTheTokenIsHeardAndItsEndToo) {
  ScriptedMember worker(doorman_.address(), 3);
  worker.sayHello();
  const auto hello = next();
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->message.hello().member(), 3);
  EXPECT_EQ(hello->lost, "");
  worker.sayBeat(5, 6);
  worker.hangUp();
  const auto beat = next(), end = next();
  ASSERT_TRUE(beat && end);
  EXPECT_EQ(beat->from, hello->from);
  EXPECT_EQ(beat->message.beat().iteration(), 5);
  EXPECT_EQ(end->from, hello->from);
  EXPECT_EQ(end->lost.find("recv from 127.0.0.1:"), 0u) << end->lost;
  EXPECT_NE(end->lost.find(": connection closed"), std::string::npos) << end->lost;
}

TEST_F(DoormanTest, AnAnswerGoesToWhoAsked) {
  ScriptedMember a(doorman_.address(), 0), b(doorman_.address(), 1);
  a.sayHello();
  const auto first = next();
  b.sayHello();
  const auto second = next();
  ASSERT_TRUE(first && second);
  control::ToMember kept, bye;
  kept.mutable_kept(), bye.mutable_bye();
  first->from->send(kept, Deadline::after(kPatience));
  second->from->send(bye, Deadline::after(kPatience));
  EXPECT_TRUE(a.hear().has_kept());
  EXPECT_TRUE(b.hear().has_bye());
}

TEST_F(DoormanTest, AWrongTokenGetsNoAnswerAndIsNotHeard) {
  Socket s = unauthenticated();
  EXPECT_EQ(messageOf([&] { proveAsClient(s, "another token", "control", Deadline::after(kPatience), nullptr); }),
            "recv from " + doorman_.address() +
                ": connection closed\n  while proving the token; a wrong one looks like this: give both ends the same");
  Socket t = unauthenticated();
  EXPECT_THROW(proveAsClient(t, kToken, "data", Deadline::after(kPatience), nullptr),
               Error);  // the purpose of the data port
  EXPECT_FALSE(next(0.05));
}

TEST_F(DoormanTest, GarbageInsteadOfAProofEndsTheConnection) {
  Socket s = unauthenticated();
  const std::string garbage(200, 'G');
  s.writeAll(garbage.data(), garbage.size(), Deadline::after(kPatience), nullptr);
  char bytes[42];
  EXPECT_THROW(s.readAll(bytes, sizeof bytes, Deadline::after(kPatience), nullptr),
               Error);  // the greeting has 41 bytes
  EXPECT_FALSE(next(0.05));
}

TEST_F(DoormanTest, GarbageAfterTheProofEndsTheConnectionWithAReason) {
  const Socket s = test::connectWithToken(doorman_.address());
  s.writeAll("\xff\xff\xff\xff", 4, Deadline::after(kPatience), nullptr);
  const auto in = next();
  ASSERT_TRUE(in);
  EXPECT_NE(in->lost.find(" announced a message of 4294967295 bytes; refused"), std::string::npos) << in->lost;
  EXPECT_TRUE(soon([&] { return s.peerGone() || !next(0); }));
}

TEST(Doorman, WaitsForTheDeadlineAndNotLonger) {
  HandClock clock;
  Doorman doorman("127.0.0.1", 0, kToken);
  std::atomic<bool> over{false};
  std::thread waiting([&, deadline = Deadline::after(30)] {
    EXPECT_FALSE(doorman.next(deadline, nullptr));
    over = true;
  });
  clock.advance(29);
  settle();
  EXPECT_FALSE(over);
  clock.advance(2);
  EXPECT_TRUE(soon([&] { return over.load(); }));
  waiting.join();
}

TEST(Doorman, AProvedWorkerMayBeSilentForDays) {
  HandClock clock;
  Doorman doorman("127.0.0.1", 0, kToken);
  ScriptedMember worker(doorman.address(), 0);
  clock.advance(3 * 86400);
  settle();
  worker.sayHello();
  const auto in = doorman.next(Deadline::after(kPatience), nullptr);
  ASSERT_TRUE(in);
  EXPECT_TRUE(in->message.has_hello()) << in->lost;
}

TEST(Doorman, SilentClientsGoAfterAWhile) {
  HandClock clock;
  Doorman doorman("127.0.0.1", 0, kToken);
  const Socket s = Socket::connectTo(doorman.address(), Deadline::after(kPatience), nullptr);
  char greeting[41];
  s.readAll(greeting, sizeof greeting, Deadline::after(kPatience), nullptr);
  clock.advance(4.9);
  settle();
  EXPECT_FALSE(s.peerGone());
  clock.advance(0.2);
  EXPECT_TRUE(soon([&] { return s.peerGone(); }));
}

TEST_F(DoormanTest, ACrowdOfUnauthenticatedClientsKeepsNoWorkerOut) {
  std::vector<Socket> crowd;
  for (int i = 0; i < 3 * Door::kMostPending; ++i) crowd.push_back(unauthenticated());
  ScriptedMember worker(doorman_.address(), 1);
  worker.sayHello();
  const auto in = next();
  ASSERT_TRUE(in);
  EXPECT_EQ(in->message.hello().member(), 1);
  EXPECT_FALSE(next(0.05));
}

TEST_F(DoormanTest, ManyMessagesWaitWithTheirSender) {
  ScriptedMember worker(doorman_.address(), 0);
  control::ToCoordinator piece;
  piece.mutable_piece()->set_data(std::string(1 << 20, 'x'));
  std::atomic<int> sent{0};
  std::thread sender([&] {
    for (; sent < 120; ++sent) worker.say(piece);
  });
  // 64 in the queue, one with the thread that reads, and what the sockets hold (two buffers of 4 MiB are asked for).
  EXPECT_TRUE(soon([&] { return sent >= static_cast<int>(Doorman::kMostWaiting); }));
  settle();
  EXPECT_LT(sent, 110);
  for (int i = 0; i < 120; ++i) {
    const auto in = next();
    ASSERT_TRUE(in);
    EXPECT_EQ(in->message.piece().data().size(), size_t{1} << 20);
  }
  sender.join();
}

TEST_F(DoormanTest, AnInterruptEndsTheWait) {
  Interrupt stop;
  stop.raise(Error(ErrorKind::kStopped, "enough"));
  EXPECT_EQ(messageOf([&] { (void)doorman_.next(Deadline::after(1000), &stop); }), "enough");
}

TEST(Doorman, ClosingEndsConnectionsEvenWithAFullQueue) {
  auto doorman = std::make_unique<Doorman>("127.0.0.1", 0, kToken);
  ScriptedMember idle(doorman->address(), 0), talkative(doorman->address(), 1);
  for (size_t i = 0; i < Doorman::kMostWaiting + 10; ++i) talkative.sayBeat(1, 1);
  doorman.reset();  // returns
  EXPECT_THROW(idle.hear(), Error);
}

}  // namespace
}  // namespace crema::cluster
