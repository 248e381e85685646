// All that waits follows the clock that a test moves: deadlines, sockets, condition variables, pauses.
#include "base/clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <future>

#include "base/door.h"
#include "base/handshake.h"
#include "base/mutex.h"
#include "base/waiting.h"
#include "support/hand_clock.h"
#include "support/message_of.h"

namespace crema {
namespace {

using test::messageOf;

bool over(const std::future<void>& f) { return f.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

TEST(Clock, RunsWithTheMachineUntilItIsHeld) {
  const double before = monotonicSeconds();
  EXPECT_TRUE(test::soon([&] { return monotonicSeconds() > before; }));
  {
    test::HandClock clock;
    const double held = monotonicSeconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(monotonicSeconds(), held);
    clock.advance(1000);
    EXPECT_NEAR(monotonicSeconds() - held, 1000, 1e-6);
  }
  EXPECT_LT(monotonicSeconds() - before, 100) << "the machine's clock again";
}

TEST(Clock, ADeadlinePassesWhenItsTimeHasCome) {
  test::HandClock clock;
  const Deadline d = Deadline::after(60);
  clock.advance(59.9);
  EXPECT_FALSE(d.passed());
  EXPECT_NEAR(d.left(), 0.1, 1e-6);
  clock.advance(0.2);
  EXPECT_TRUE(d.passed());
  EXPECT_EQ(d.pollMillis(), 0);
  EXPECT_TRUE(Deadline::after(std::nan("")).passed());
  EXPECT_TRUE(Deadline::after(-1).passed());
  EXPECT_FALSE(Deadline::after(1e300).passed());
}

// `wait` ends when the clock has been moved on by that much, and not before.
void endsAfter(double seconds, const std::function<void()>& wait) {
  test::HandClock clock;
  double took = 0;
  const auto waiting = std::async(std::launch::async, [&] {
    const double from = monotonicSeconds();
    wait();
    took = monotonicSeconds() - from;
  });
  EXPECT_TRUE(clock.advanceUntil([&] { return over(waiting); }, seconds / 100)) << "too late";
  waiting.wait();
  EXPECT_GE(took, seconds * 0.999);
}

TEST(Clock, AWaitOnASocketFollowsIt) {
  const Socket listener = Socket::listenOn("127.0.0.1", 0);
  std::string message;
  std::atomic<bool> begun{false};
  test::HandClock clock;
  const auto waiting = std::async(std::launch::async, [&] {
    const Deadline d = Deadline::after(3000);
    begun = true;
    message = messageOf([&] { (void)listener.accept(d, nullptr); });
  });
  ASSERT_TRUE(test::soon([&] { return begun.load(); }));
  clock.advance(2999);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(over(waiting));
  clock.advance(2);
  EXPECT_TRUE(test::soon([&] { return over(waiting); }));
  EXPECT_EQ(message, "waiting for a connection on " + listener.address() + ": nothing happened before the deadline");
}

TEST(Clock, APauseFollowsIt) {
  endsAfter(500, [] { pauseFor(500, nullptr); });
  Interrupt interrupt;
  interrupt.raise(Error(ErrorKind::kStopped, "enough"));
  EXPECT_EQ(messageOf([&] { pauseFor(500, &interrupt); }), "enough");
}

TEST(Clock, AWaitForAConditionFollowsIt) {
  Mutex mutex;
  std::condition_variable changed;
  endsAfter(500, [&] {
    MutexLock lock(mutex);
    EXPECT_FALSE(waitUntil(changed, lock, Deadline::after(500), nullptr, [] { return false; }));
  });
}

TEST(Clock, ASilentClientOfADoorIsCutOffByIt) {
  test::HandClock clock;
  Door door(Socket::listenOn("127.0.0.1", 0), "token", "control", "a port", [](Socket, const Interrupt&) {});
  const Socket client = Socket::connectTo(door.address(), Deadline::after(1), nullptr);
  char hello[41];
  client.readAll(hello, sizeof hello, Deadline::after(1), nullptr);
  clock.advance(Door::kProofSeconds - 0.1);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(client.peerGone());
  clock.advance(0.2);
  EXPECT_TRUE(test::soon([&] { return client.peerGone(); }));
  EXPECT_EQ(door.refused(), 1);
  clock.advance(10000);  // the hours for which the door itself waits have an end, and it begins anew
  Socket later = Socket::connectTo(door.address(), Deadline::after(1), nullptr);
  EXPECT_NO_THROW(proveAsClient(later, "token", "control", Deadline::after(1), nullptr));
}

}  // namespace
}  // namespace crema
