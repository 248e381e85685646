#include "base/answering_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "base/error.h"
#include "support/hand_clock.h"

namespace crema {
namespace {

// "crash", "hang", "big", "bad", "pid", "files", "lie", anything else comes back with its number.
std::string answer(std::string_view request) {
  static int asked = 0;
  ++asked;
  if (request == "crash") ::raise(SIGSEGV);
  while (request == "hang") ::pause();
  if (request == "big") return std::to_string(std::vector<char>(size_t{8} << 30).size());
  if (request == "bad") badData("the {} is bad", "file");
  if (request == "pid") return std::to_string(::getpid());
  if (request == "files") {
    std::string open;
    for (int fd = 0; fd < 64; ++fd)
      if (::fcntl(fd, F_GETFD) >= 0) open += std::to_string(fd) + " ";
    return open;
  }
  for (int fd = 0; request == "lie" && fd < 64; ++fd) {
    const uint64_t size = uint64_t{1} << 62;
    if (::fcntl(fd, F_GETFD) >= 0 && ::write(fd, &size, sizeof size) < 0) ::_exit(1);
  }
  return std::to_string(asked) + std::string(request);
}

const ChildLimits kLimits{120, int64_t{1} << 30};

TEST(AnsweringChild, AnswersManyAndKeepsItsState) {
  AnsweringChild child(kLimits, answer);
  EXPECT_EQ(child.ask("a").bytes, "1a");
  EXPECT_EQ(child.ask("").bytes, "2");
  const std::string large(3 << 20, 'x');  // more than a socket holds
  EXPECT_EQ(child.ask(large).bytes, "3" + large);
  try {
    (void)child.ask("bad");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kData);
    EXPECT_STREQ(e.what(), "the file is bad");
  }
  EXPECT_EQ(child.ask("b").bytes, "5b");
  std::vector<std::thread> askers;
  for (int t = 0; t < 4; ++t)
    askers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) EXPECT_EQ(child.ask("thread").bytes.back(), 'd');
    });
  for (auto& asker : askers) asker.join();
}

TEST(AnsweringChild, ItsDeathIsAnAnswer) {
  AnsweringChild child(kLimits, answer);
  EXPECT_EQ(child.ask("a").died, "");
  EXPECT_NE(child.ask("crash").died.find("ended with signal 11"), std::string::npos);
  EXPECT_NE(child.ask("a").died.find("ended with signal 11"), std::string::npos) << "and stays so";
}

TEST(AnsweringChild, ASizeThatCannotBeIsItsEnd) {
  AnsweringChild child(kLimits, answer);
  const std::string end = "announced an answer of 4611686018427387904 bytes, and 1024 MiB are its limit";
  EXPECT_EQ(child.ask("lie").died, end);
  EXPECT_EQ(child.ask("a").died, end);
}

TEST(AnsweringChild, SilenceEnds) {
  AnsweringChild child({0.5, int64_t{1} << 30}, answer);
  const double started = monotonicSeconds();
  EXPECT_EQ(child.ask("hang").died, "did not answer within 0.5 seconds");
  EXPECT_LT(monotonicSeconds() - started, test::kPatience);
}

TEST(AnsweringChild, AStoppedOneEndsThoughItTakesNoRequest) {
  AnsweringChild child({0.5, int64_t{1} << 30}, answer);
  const pid_t pid = std::stoi(child.ask("pid").bytes);
  ::kill(pid, SIGSTOP);
  const double started = monotonicSeconds();
  EXPECT_EQ(child.ask(std::string(3 << 20, 'x')).died, "did not answer within 0.5 seconds");
  EXPECT_LT(monotonicSeconds() - started, test::kPatience);
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(AnsweringChild, NothingOfItIsLeft) {
  pid_t pid = 0;
  {
    AnsweringChild first(kLimits, answer), second(kLimits, answer);
    pid = std::stoi(second.ask("pid").bytes);
    EXPECT_EQ(::kill(pid, 0), 0);
    const std::string open = second.ask("files").bytes;  // one: no standard streams, none of the first's sockets
    EXPECT_EQ(std::count(open.begin(), open.end(), ' '), 1) << open;
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

// Children of a process that was killed end with it, as their sockets close.
TEST(AnsweringChild, EndsWithItsProcess) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    AnsweringChild child(kLimits, answer);
    const std::string pid = child.ask("pid").bytes;
    if (::write(ends[1], pid.data(), pid.size()) < 0) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(parent, nullptr, 0);
  char text[16] = {};
  ASSERT_GT(::read(ends[0], text, sizeof text - 1), 0);
  ::close(ends[0]), ::close(ends[1]);
  const auto lives = [&] {  // a zombie that its new parent has not reaped yet does not count
    std::ifstream stat(fmt::format("/proc/{}/stat", text));
    const std::string all{std::istreambuf_iterator<char>(stat), {}};
    return !all.empty() && all.substr(all.rfind(')') + 2, 1) != "Z";
  };
  EXPECT_TRUE(test::soon([&] { return !lives(); }));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(AnsweringChild, MemoryHasALimit) {
  AnsweringChild child(kLimits, answer);
  EXPECT_EQ(child.ask("big").died, "asked for more than 1024 MiB of memory");
  EXPECT_EQ(child.ask("a").bytes, "2a") << "and it goes on";
}
#endif

}  // namespace
}  // namespace crema
