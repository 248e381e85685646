// What killed writers leave behind, and which of it is removed. Writers are real processes, as locks and SIGKILL
// concern processes.
#include "base/temporary.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "support/hand_clock.h"
#include "support/message_of.h"
#include "support/shared_data.h"

namespace crema {
namespace {

size_t entries(const std::string& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

// As fork(); the child ends with this process, whatever ends that.
pid_t child() {
  const pid_t pid = ::fork();
  if (pid == 0) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return pid;
}

// A process that writes the file again and again.
pid_t writer(const std::string& path, bool unnamed, size_t bytes) {
  const pid_t pid = child();
  if (pid != 0) return pid;
  const std::string content(bytes, 'x');
  for (;;) writeFileAtomically(path, content, unnamed);
}

void killed(pid_t pid) {
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
}

bool temporaryIsThere(const std::string& folder) {
  for (const auto& e : std::filesystem::directory_iterator(folder))
    if (e.path().string().find(".crema-tmp-") != std::string::npos) return true;
  return false;
}

TEST(Temporary, KilledWritersLeaveOneWholeFileAndWhatTheNextClears) {
  test::TemporaryFolder folder;
  const std::string path = folder.file("a");
  int left = 0;
  for (int i = 0; i < 20; ++i) {
    const pid_t pid = writer(path, false, 4 << 20);
    ASSERT_TRUE(test::soon([&] { return temporaryIsThere(folder.path()); }));
    ::usleep(static_cast<useconds_t>(300 * i));
    killed(pid);
    left += temporaryIsThere(folder.path());
    clearLeftovers(path);
    EXPECT_FALSE(temporaryIsThere(folder.path()));
    if (fileExists(path)) {
      EXPECT_EQ(std::filesystem::file_size(path), size_t{4 << 20});
    }
  }
  EXPECT_GT(left, 0) << "no writer was killed while it wrote";
}

// With unnamed files nothing is left at all; on other file systems the next run removes what is left.
TEST(Temporary, UnnamedFilesLeaveNothing) {
  test::TemporaryFolder folder;
  const int probe = ::open(folder.path().c_str(), O_TMPFILE | O_WRONLY, 0644);
  const bool unnamed = probe >= 0;
  if (unnamed) ::close(probe);
  for (int i = 0; i < 20; ++i) {
    const std::string path = folder.file(std::to_string(i));
    const pid_t pid = child();
    if (pid == 0) {
      writeFileAtomically(path, std::string(16 << 20, 'x'));
      ::_exit(0);
    }
    ::usleep(static_cast<useconds_t>(1000 * i));
    killed(pid);
    if (!unnamed) clearLeftovers(path);
    EXPECT_FALSE(temporaryIsThere(folder.path()));
    if (fileExists(path)) {
      EXPECT_EQ(std::filesystem::file_size(path), size_t{16 << 20});
    }
  }
}

TEST(Temporary, NamesOfAnotherFileAreReplacedWithoutAGap) {
  test::TemporaryFolder folder;
  for (const bool unnamed : {true, false}) {
    const std::string path = folder.file(unnamed ? "unnamed" : "named");
    writeFileAtomically(path, std::string(1 << 16, 'x'));
    const pid_t pid = writer(path, unnamed, 1 << 16);
    for (int i = 0; i < 2000; ++i) ASSERT_EQ(readFile(path).size(), size_t{1 << 16});
    killed(pid);
    clearLeftovers(path);
  }
  EXPECT_EQ(entries(folder.path()), 2u);
}

TEST(Temporary, WhatSomebodyHoldsOrAnotherHostMayHoldStays) {
  test::TemporaryFolder folder;
  const std::string path = folder.file("snap"), held = temporaryName(path);
  const int fd = ::open(held.c_str(), O_RDWR | O_CREAT | O_EXCL, 0644);
  ASSERT_TRUE(holdTemporary(fd, held));
  const std::string foreign = path + ".crema-tmp-other-host-0123456789abcdef",
                    old = path + ".crema-tmp-other-host-0123456789abcdee", dead = temporaryName(path),
                    folderOfOthers = path + ".crema-tmp-other-host-0123456789abcded";
  for (const auto& name : {foreign, old, dead}) writeFileAtomically(name, "x");
  std::filesystem::create_directory(folderOfOthers);
  const auto longAgo = std::filesystem::file_time_type::clock::now() - std::chrono::hours(2);
  for (const auto& name : {old, folderOfOthers}) std::filesystem::last_write_time(name, longAgo);
  clearLeftovers(path);
  EXPECT_TRUE(fileExists(held) && fileExists(foreign) && fileExists(folderOfOthers));
  EXPECT_FALSE(fileExists(old) || fileExists(dead));
  ::close(fd);
  for (const char* neighbour : {"elsewhere", "sna", "snap_iter_1"}) clearLeftovers(folder.file(neighbour));
  EXPECT_TRUE(fileExists(held));
  clearLeftovers(path);
  EXPECT_FALSE(fileExists(held));
}

// Names that people choose, such as dates of eight digits, are not taken for temporary ones.
TEST(Temporary, WhatUsersNamedStays) {
  test::TemporaryFolder folder;
  const std::string path = folder.file("db");
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const std::vector<std::string> names = {path + ".tmp-old-20231231",
                                          path + ".part-backup-20240101",
                                          fmt::format("{}.crema-tmp-{}-20240101", path, host),
                                          fmt::format("{}.crema-tmp-{}-0123456789ABCDEF", path, host),
                                          path + ".crema-tmp-0123456789abcdef",
                                          fmt::format("{}_test.crema-tmp-{}-0123456789abcdef", path, host)};
  for (const auto& name : names) {
    std::filesystem::create_directory(name);
    writeFileAtomically(name + "/precious", "x");
    std::filesystem::last_write_time(name, std::filesystem::file_time_type::clock::now() - std::chrono::hours(48));
  }
  clearLeftovers(path);
  PartFolder(path).finish("database");
  for (const auto& name : names) EXPECT_TRUE(fileExists(name + "/precious")) << name;
}

TEST(Temporary, FoldersAreClearedLikewise) {
  test::TemporaryFolder folder;
  const std::string path = folder.file("db");
  const pid_t pid = child();
  if (pid == 0) {
    const PartFolder part(path);
    writeFileAtomically(part.name() + "/data", "x");
    for (;;) ::pause();
  }
  while (entries(folder.path()) == 0) ::usleep(1000);
  ::usleep(20000);
  {
    PartFolder mine(path);
    EXPECT_EQ(entries(folder.path()), 2u) << "a living neighbour's";
    killed(pid);
    mine.finish("database");
  }
  EXPECT_EQ(entries(folder.path()), 2u);
  clearLeftovers(path);
  EXPECT_EQ(entries(folder.path()), 1u);
  EXPECT_NE(test::messageOf([&] { PartFolder(folder.file("no/such")); }).find("make its parent folder first"),
            std::string::npos);
}

TEST(Temporary, AFolderThatHasSomethingIsRefusedAtTheStartAndWhatIsFinishedIsNeverLost) {
  test::TemporaryFolder folder;
  const std::string path = folder.file("db");
  std::filesystem::create_directory(path);
  {
    PartFolder part(path + "//");  // an empty folder gives way
    writeFileAtomically(part.name() + "/data", "x");
    writeFileAtomically(path + "/late", "somebody's");
    const std::string message = test::messageOf([&] { part.finish("database"); });
    const size_t at = message.find("it is kept at ") + 14, end = message.find(": move it there");
    ASSERT_LT(at, end) << message;
    clearLeftovers(path);
    EXPECT_EQ(readFile(message.substr(at, end - at) + "/data"), "x") << message;
  }
  EXPECT_EQ(readFile(path + "/late"), "somebody's");
  EXPECT_NE(test::messageOf([&] { PartFolder again(path); }).find("there is something at " + path + " already"),
            std::string::npos);
  EXPECT_EQ(entries(folder.path()), 2u);
}

TEST(Temporary, AFullDiskLeavesNothing) {
  test::TemporaryFolder folder;
  rlimit was{};
  ::getrlimit(RLIMIT_FSIZE, &was);
  const rlimit little{100, was.rlim_max};
  ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &little);
  for (const bool unnamed : {true, false})
    EXPECT_NE(test::messageOf([&] {
                writeFileAtomically(folder.file("a"), std::string(1000, 'x'), unnamed);
              }).find("no part of it was left behind"),
              std::string::npos);
  ::setrlimit(RLIMIT_FSIZE, &was);
  EXPECT_EQ(entries(folder.path()), 0u);
}

}  // namespace
}  // namespace crema
