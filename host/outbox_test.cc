// Events to a host that does not read, over a real pipe.
#include "host/outbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "host/job_io.h"
#include "support/hand_clock.h"
#include "support/message_of.h"

namespace crema::host {
namespace {

using test::messageOf;

wire::Event progress(int64_t iteration) {
  wire::Event e;
  e.mutable_progress()->set_iteration(iteration);
  return e;
}
wire::Event lost(int worker, const std::string& story = "") {
  wire::Event e;
  e.mutable_lost()->set_worker(worker), e.mutable_lost()->set_story(story);
  return e;
}

// A pipe of one page, of which the test is the reader.
class Host {
 public:
  Host() {
    ::signal(SIGPIPE, SIG_IGN);  // as the executable does
    EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0);
    EXPECT_GE(::fcntl(ends_[1], F_SETPIPE_SZ, 4096), 4096);
  }
  ~Host() {
    leave();
    ::close(ends_[1]);
  }
  void leave() {
    if (ends_[0] >= 0) ::close(std::exchange(ends_[0], -1));
  }
  wire::Event read() {
    wire::Event e;
    EXPECT_TRUE(readDelimited(ends_[0], "Event", buffer_, &e));
    return e;
  }
  std::function<void(const wire::Event&)> give() {
    return [this](const wire::Event& e) { writeDelimited(ends_[1], e); };
  }

 private:
  int ends_[2] = {-1, -1};
  std::string buffer_;
};

TEST(Outbox, NobodyWaitsForAHostThatReadsNothingAndItMissesNothingButOldProgress) {
  Host host;
  Outbox outbox(host.give());
  for (int i = 0; i < 2000; ++i) outbox.put(lost(i, std::string(100, 'x'))), outbox.put(progress(i));
  for (int i = 2000; i < 100000; ++i) outbox.put(progress(i));
  const std::string late = messageOf([&] { outbox.flush(0.05); });
  EXPECT_NE(late.find("the program that started this process has read nothing for "), std::string::npos) << late;
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(host.read().lost().worker(), i);
    const auto next = host.read();
    ASSERT_EQ(next.progress().iteration(), i < 1999 ? i : 99999) << next.ShortDebugString();
  }
  outbox.put(lost(7));
  outbox.flush(test::kPatience);
  EXPECT_EQ(host.read().lost().worker(), 7);
}

TEST(Outbox, ItHoldsNoMoreThanItMay) {
  Host host;
  Outbox outbox(host.give(), 100000);
  const std::string refused = messageOf([&] {
    for (int i = 0; i < 10000; ++i) outbox.put(lost(i, std::string(100, 'x')));
  });
  EXPECT_NE(refused.find(" events wait for it: is it stopped"), std::string::npos) << refused;
  host.leave();  // which ends the wait of its thread
}

TEST(Outbox, AHostThatIsGoneIsAnErrorOfTheNextEvent) {
  Host host;
  Outbox outbox(host.give());
  host.leave();
  outbox.put(lost(1));
  EXPECT_NE(messageOf([&] { outbox.flush(test::kPatience); }).find("cannot write to the host program"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { outbox.put(lost(2)); }).find("cannot write to the host program"), std::string::npos);
}

TEST(Outbox, WhatEndsARunIsTheLastThatTheHostHears) {
  Host host;
  Outbox outbox(host.give());
  const auto body = [&] {
    for (int i = 0; i < 100; ++i) outbox.put(lost(i, std::string(100, 'x')));
    badData("the record is damaged");
  };
  std::thread reads([&] {
    for (int i = 0; i < 100; ++i) EXPECT_EQ(host.read().lost().worker(), i);
    EXPECT_EQ(host.read().failed().story(), "the record is damaged");
  });
  EXPECT_EQ(messageOf([&] { reportingThrough(outbox, test::kPatience, body); }), "the record is damaged");
  reads.join();
  EXPECT_EQ(messageOf([&] {
              reportingThrough(outbox, 0.05, [&] { outbox.put(lost(1, std::string(9000, 'y'))); });
            }).find("the run has ended, and the program that started this process has read nothing for "),
            0u);
  host.leave();
}

}  // namespace
}  // namespace crema::host
