// Children of a shell: how they end, what becomes of their lines, and that nothing of them is left.
#include "host/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <thread>

#include "support/hand_clock.h"
#include "support/settle.h"
#include "wire.pb.h"

namespace crema::host {
namespace {

std::unique_ptr<ChildProcess> shell(const std::string& script) {
  return std::make_unique<ChildProcess>(std::vector<std::string>{"/nowhere/sh", "/bin/sh"},
                                        std::vector<std::string>{"sh", "-c", script});
}

std::string endOf(ChildProcess& child) {
  std::string how;
  EXPECT_TRUE(test::soon([&] { return !(how = child.ended()).empty(); }));
  return how.substr(how.find(' ', sizeof "process") + 1);  // without its number
}

size_t openFiles() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

class ChildProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // as the executable does
    testing::internal::CaptureStderr();
  }
  // Lines of the children; afterwards no descriptor and no child may be left.
  std::string lines() {
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_EQ(openFiles(), before_);
    EXPECT_TRUE(::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD);
    return text;
  }

 private:
  size_t before_ = openFiles();
};

TEST_F(ChildProcessTest, SaysHowItEndedAndRelaysItsLines) {
  auto child = shell("echo one >&2; printf two >&2; exit 7");
  EXPECT_EQ(endOf(*child), "ended with exit code 7");
  EXPECT_EQ(child->ended(), "");
  child.reset();
  child = shell("kill -9 $$");
  EXPECT_EQ(endOf(*child), "was ended by signal 9");
  child.reset();
  EXPECT_EQ(lines(), "one\ntwo\n");
}

TEST_F(ChildProcessTest, ItsErrorIsForWhoTakesIt) {
  const std::string script = "echo one >&2; echo 'crema: error: no data.mdb' >&2; echo '  in net' >&2; exit 1";
  auto child = shell(script);
  EXPECT_EQ(endOf(*child), "ended with exit code 1");
  EXPECT_EQ(child->takeError(), "crema: error: no data.mdb\n  in net\n");
  EXPECT_EQ(child->takeError(), "");
  child.reset();
  child = shell(script);  // nobody takes it
  EXPECT_EQ(endOf(*child), "ended with exit code 1");
  child.reset();
  EXPECT_EQ(lines(), "one\none\ncrema: error: no data.mdb\n  in net\n");
}

TEST_F(ChildProcessTest, GetsMessagesOnItsStdinUntilItHasEnded) {
  wire::Input input;
  input.mutable_wish()->set_stop(true);
  auto child = shell("head -c 1 | od -An -tu1 >&2; exit 5");
  child->send(input);
  EXPECT_EQ(endOf(*child), "ended with exit code 5");
  child->send(input);
  child.reset();
  EXPECT_EQ(std::atoi(lines().c_str()), static_cast<int>(input.ByteSizeLong()));
}

TEST_F(ChildProcessTest, OneThatDoesNotReadItsStdinHoldsNobodyUp) {
  test::HandClock clock;
  auto child = shell("exec sleep 600");
  std::atomic<bool> over{false};
  std::thread sender([&] {
    wire::Input input;
    input.mutable_rows()->mutable_batch()->add_column()->set_values(std::string(1 << 20, 'x'));
    child->send(input);
    over = true;
  });
  test::settle();
  EXPECT_FALSE(over);
  EXPECT_TRUE(clock.advanceUntil([&] { return over.load(); }));
  sender.join();
  child.reset();
  lines();
}

TEST_F(ChildProcessTest, AGrandchildThatKeepsStderrOpenDoesNotHoldItsEndUp) {
  auto child = shell("sleep 600 & echo $! >&2; exit 3");
  EXPECT_EQ(endOf(*child), "ended with exit code 3");
  child.reset();
  const std::string id = lines();
  ASSERT_GT(std::atoi(id.c_str()), 1);
  EXPECT_EQ(::kill(std::atoi(id.c_str()), SIGKILL), 0);
}

TEST_F(ChildProcessTest, OneThatDoesNotEndIsKilledAfterItsGrace) {
  auto child = shell("trap '' TERM; while :; do sleep 1; done");
  child->end(0.05);
  EXPECT_EQ(child->ended(), "");
  child.reset();
  lines();
}

TEST_F(ChildProcessTest, WithoutAnExecutableItEndsWith127) {
  auto child = std::make_unique<ChildProcess>(std::vector<std::string>{"/nowhere/sh"}, std::vector<std::string>{"sh"});
  EXPECT_EQ(endOf(*child), "ended with exit code 127");
  child.reset();
  EXPECT_EQ(lines(), "crema: error: cannot start /nowhere/sh\n");
}

}  // namespace
}  // namespace crema::host
