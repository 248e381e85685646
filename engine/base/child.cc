#include "base/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/child_answer.h"
#include "base/deadline.h"
#include "base/error.h"
#include "base/fd_io.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CREMA_SHADOW_MEMORY 1  // sanitizers reserve terabytes of addresses
#endif

namespace crema {
namespace {

constexpr char kEnd = '.';  // behind an answer

void limitMemory([[maybe_unused]] int64_t bytes) {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
#ifndef CREMA_SHADOW_MEMORY
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto most = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + bytes);
  const rlimit memory{most, most};
  ::setrlimit(RLIMIT_AS, &memory);
#endif
}

void writeAll(int fd, const std::string& bytes) {
  const auto part = [&](size_t at) { return ::write(fd, bytes.data() + at, bytes.size() - at); };
  if (!moveAll(bytes.size(), part)) ::_exit(3);
}

[[noreturn]] void child(int out, pid_t parent, const ChildLimits& limits, const std::function<std::string()>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(3);
  prepareChild(limits.bytes);
  writeAll(out, answerOf(body));
  writeAll(out, {kEnd});
  ::_exit(0);
}

// Until the child closes its end; false when the deadline came first.
bool readAll(int in, Deadline deadline, std::string* bytes) {
  std::string buffer(1 << 20, '\0');
  while (!deadline.passed()) {
    pollfd p{in, POLLIN, 0};
    const int ready = ::poll(&p, 1, deadline.pollMillis());
    if (ready <= 0) continue;
    const ssize_t n = ::read(in, buffer.data(), buffer.size());
    if (n == 0) return true;
    if (n > 0) bytes->append(buffer, 0, static_cast<size_t>(n));
  }
  return false;
}

}  // namespace

std::string howItEnded(int status) {
  return WIFSIGNALED(status) ? fmt::format("ended with signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                             : fmt::format("ended with code {}", WEXITSTATUS(status));
}

std::string startRemedy(int code) {
  const std::string more = memoryLimit();
  const bool limited = !more.empty();
  if (code == ENOMEM) return limited ? more : "there is not enough memory; free some, or raise the container's limit";
  return limited ? more + ", or the limit of processes (ulimit -u)" : "raise the limit of processes (ulimit -u)";
}

void prepareChild(int64_t bytes) {
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(s, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  limitMemory(bytes);
}

ChildResult inChild(const ChildLimits& limits, const std::function<std::string()>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    ioError("cannot make a pipe: {}; raise the limit of open files", systemError(errno));
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid == 0) child(ends[1], parent, limits, body);
  const int code = errno;
  ::close(ends[1]);
  std::string bytes;
  const bool ended = pid > 0 && readAll(ends[0], Deadline::after(limits.seconds), &bytes);
  ::close(ends[0]);
  if (pid < 0) ioError("cannot start a process: {}; {}", systemError(code), startRemedy(code));
  if (!ended) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) return {"", fmt::format("did not end within {:.3g} seconds", limits.seconds)};
  if (WIFSIGNALED(status) || bytes.size() < 2 || bytes.back() != kEnd) return {"", howItEnded(status)};
  bytes.pop_back();
  return resultOf(std::move(bytes), limits);
}

}  // namespace crema
