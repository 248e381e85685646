// The program's process: how its end is said, and that nothing of it is left.
#include "node/program.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <condition_variable>
#include <fstream>

#include "base/waiting.h"

namespace crema::node {
namespace {

class ProgramTest : public testing::Test {
 protected:
  // Runs a shell's line; how it ended, or "" .
  std::unique_ptr<Program> start(const std::string& line, const std::string& payload = "") {
    wire::NodeInput::Compute what;
    for (const std::string& word : {std::string("/bin/sh"), std::string("-c"), line}) what.add_argument(word);
    what.add_environment("GREETING=hello");
    what.set_folder(testing::TempDir());
    what.set_payload(payload);
    return std::make_unique<Program>(what, [this](const std::string& story) {
      const MutexLock lock(mutex_);
      story_ = story;
      changed_.notify_all();
    });
  }
  std::string story() {
    MutexLock lock(mutex_);
    EXPECT_TRUE(waitUntil(changed_, lock, Deadline::after(60), nullptr, [this] { return story_ != "still running"; }));
    return story_;
  }
  Mutex mutex_;
  std::condition_variable changed_;
  std::string story_ = "still running";
};

TEST_F(ProgramTest, FindsItsPayloadItsEnvironmentAndItsFolder) {
  const auto program =
      start("test \"$(cat <&3)\" = \"the function\" && test $GREETING = hello && test \"$(pwd -P)/\" = \"$(cd " +
                testing::TempDir() + " && pwd -P)/\"",
            "the function");
  EXPECT_EQ(story(), "");
}

TEST_F(ProgramTest, ItsEndIsToldWithItsLastLines) {
  const auto program = start("for i in $(seq 30); do echo line $i; done; echo oops >&2; exit 7");
  const std::string s = story();
  EXPECT_EQ(s.rfind("ended with code 7; its last lines:\n  line 12\n", 0), 0u) << s;
  EXPECT_EQ(s.substr(s.size() - 17), "\n  line 30\n  oops") << s;
}

TEST_F(ProgramTest, ASignalIsNamed) {
  const auto program = start("kill -9 $$");
  EXPECT_EQ(
      story(),
      "ended with signal 9 (Killed), which the kernel sends when memory is short: raise "
      "spark.executor.memoryOverhead, of which programs have theirs on YARN and Kubernetes, or make batches smaller");
}

// One that is stopped does what it is asked to all the same; one that does not is killed, and the kernel is not blamed.
TEST_F(ProgramTest, AStoppedProgramIsEnded) {
  const auto program = start("trap 'echo my stack; exit 5' ABRT; kill -STOP $$; while :; do sleep 0.01; done");
  const auto stopped = [&] {
    std::ifstream stat(fmt::format("/proc/{}/stat", program->pid()));
    const std::string all{std::istreambuf_iterator<char>(stat), {}};
    return all.substr(all.rfind(')') + 2, 1) == "T";
  };
  while (!stopped()) ::usleep(5000);
  program->abort(60);
  EXPECT_EQ(story(), "ended with code 5; its last lines:\n  my stack");
  story_ = "still running";
  const std::string file = testing::TempDir() + "/crema-program-stubborn";
  ::unlink(file.c_str());
  const auto stubborn = start("trap '' TERM; echo here >" + file + "; while :; do sleep 0.01; done");
  while (::access(file.c_str(), F_OK) != 0) ::usleep(5000);
  stubborn->end(0.2);
  EXPECT_EQ(story().rfind("ended with signal 9 (Killed), as it did not end when it was asked to", 0), 0u) << story();
}

TEST_F(ProgramTest, WhatCannotBeStartedIsNamed) {
  wire::NodeInput::Compute what;
  what.add_argument("/no/such/program");
  std::string said;
  Program program(what, [&](const std::string& s) {
    const MutexLock lock(mutex_);
    story_ = s;
    changed_.notify_all();
  });
  EXPECT_EQ(
      story(),
      "ended with code 127; its last lines:\n  crema: error: cannot start /no/such/program: No such file or directory");
}

// What it has started ends with it: a data loader, or a shell's child that ignores SIGTERM.
TEST_F(ProgramTest, NothingOfItIsLeft) {
  const std::string file = testing::TempDir() + "/crema-program-child";
  ::unlink(file.c_str());
  pid_t child = 0;
  {
    const auto program = start("trap '' TERM; sleep 1000 & echo $! >" + file + "; wait");
    const Deadline deadline = Deadline::after(60);
    while (child == 0 && !deadline.passed()) std::ifstream(file) >> child, ::usleep(5000);
    ASSERT_GT(child, 0);
    program->end(0.2);
  }
  const Deadline deadline = Deadline::after(60);
  const auto lives = [&] {
    std::ifstream stat(fmt::format("/proc/{}/stat", child));
    const std::string all{std::istreambuf_iterator<char>(stat), {}};
    return !all.empty() && all.substr(all.rfind(')') + 2, 1) != "Z";
  };
  while (lives() && !deadline.passed()) ::usleep(5000);
  EXPECT_FALSE(lives());
  EXPECT_EQ(story().rfind("ended with signal 9", 0), 0u);
}

// A daemon in a session of its own has the program's standard output: nobody waits for it to close that.
TEST_F(ProgramTest, WhatOutlivesItKeepsNobodyWaiting) {
  const std::string file = testing::TempDir() + "/crema-program-daemon";
  ::unlink(file.c_str());
  pid_t daemon = 0;
  {
    const auto program = start("setsid sh -c 'echo $$ >" + file + "; exec sleep 1000' & while [ ! -s " + file +
                               " ]; do sleep 0.01; done; echo last words; exit 3");
    const Deadline deadline = Deadline::after(60);
    while (story().empty() && !deadline.passed()) ::usleep(5000);
    std::ifstream(file) >> daemon;
    EXPECT_NE(story().find("last words"), std::string::npos) << story();
  }
  ASSERT_GT(daemon, 0);
  EXPECT_EQ(::kill(daemon, SIGKILL), 0) << "it was there all the time";
  ::unlink(file.c_str());
}

}  // namespace
}  // namespace crema::node
