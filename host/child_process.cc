#include "host/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/child.h"
#include "base/fd_io.h"
#include "base/log.h"
#include "base/log_files.h"
#include "host/job_io.h"

namespace crema::host {
namespace {

constexpr double kSendSeconds = 10;
constexpr double kKilledSeconds = 1;    // from SIGKILL to the end
constexpr size_t kPipeBytes = 1 << 16;  // what Linux holds of a pipe

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0)
      ioError("cannot make pipes for a child process: {}; raise the limit of open files (ulimit -n)",
              systemError(errno));
  }
  ~Pipe() {
    for (const int fd : ends_)
      if (fd >= 0) ::close(fd);
  }
  Pipe(const Pipe&) = delete;
  int out() const { return ends_[0]; }
  int in() const { return ends_[1]; }
  int takeOut() { return std::exchange(ends_[0], -1); }
  int takeIn() { return std::exchange(ends_[1], -1); }

 private:
  std::array<int, 2> ends_{-1, -1};
};

// In the child, between fork() and exec(): other threads may have held locks, of malloc() too, so nothing is allocated.
// Its own process group, so that Ctrl-C reaches only the parent, which passes it on as one request.
[[noreturn]] void become(int in, int err, pid_t parent, const std::vector<std::string>& paths, char* const* arguments) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(3);
  // The same for a SIGTERM that a scheduler sends to all processes; workers keep it ignored.
  ::signal(SIGTERM, SIG_IGN);
  ::dup2(in, STDIN_FILENO);
  ::dup2(err, STDERR_FILENO);
  int null = ::open("/dev/null", O_WRONLY);
  if (null < 0) null = ::memfd_create("unread", 0);  // a chroot may have no /dev
  ::dup2(null, STDOUT_FILENO);
  for (const auto& path : paths) ::execv(path.c_str(), arguments);
  ::dprintf(STDERR_FILENO, "crema: error: cannot start %s\n", paths.empty() ? "this executable" : paths.back().c_str());
  ::_exit(127);
}

// Collects bytes to lines and relays those, but for the error that ends them.
class Lines {
 public:
  explicit Lines(std::string& error) : error_(error) {}
  void add(const char* bytes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (bytes[i] != '\n') {
        line_ += bytes[i];
        continue;
      }
      take();
      line_.clear();
    }
  }
  ~Lines() {
    if (!line_.empty()) take();
  }

 private:
  void take() {
    if (error_.empty() && !line_.starts_with("crema: error: ")) return relayLine(line_);
    error_ += line_ + '\n';
  }

  std::string& error_;
  std::string line_;
};

// Reads until the other end is closed everywhere. The child's own children may keep it open: once the child has ended
// only what is in the pipe is read.
void relay(int fd, const Interrupt& gone, std::string& error) {
  Lines lines(error);
  char buffer[4096];
  for (size_t left = kPipeBytes; left > 0;) {
    const bool last = gone.raised();
    pollfd p[2] = {{fd, POLLIN, 0}, {last ? -1 : gone.descriptor(), POLLIN, 0}};
    if (::poll(p, 2, last ? 0 : -1) < 0 && errno == EINTR) continue;
    if (!p[0].revents && !last) continue;
    if (!p[0].revents) break;
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    lines.add(buffer, static_cast<size_t>(n));
    if (last) left -= std::min(left, static_cast<size_t>(n));
  }
  ::close(fd);
}

}  // namespace

// The constructor without arguments has made the object, so the destructor runs when this one throws.
ChildProcess::ChildProcess(std::vector<std::string> paths, std::vector<std::string> arguments) : ChildProcess() {
  std::vector<char*> words;
  for (auto& a : arguments) words.push_back(a.data());
  words.push_back(nullptr);
  Pipe in, err;
  ::fcntl(in.in(), F_SETFL, O_NONBLOCK);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid == 0) become(in.out(), err.in(), parent, paths, words.data());
  if (pid < 0) {
    const int code = errno;
    ioError("cannot start a child process: {}; {}", systemError(code), startRemedy(code));
  }
  pid_ = pid, stdin_ = in.takeIn();
  try {
    relay_ = std::thread([fd = err.out(), this] { relay(fd, gone_, error_); });
  } catch (const std::system_error& e) {
    ioError("cannot start a thread for the log lines of a child process: {}; {}", e.code().message(),
            startRemedy(e.code().value()));
  }
  err.takeOut();
}

ChildProcess::~ChildProcess() {
  end(0);
  relayError(takeError());
}

std::string ChildProcess::takeError() {
  if (relay_.joinable()) relay_.join();
  return std::exchange(error_, "");
}

void ChildProcess::closeStdin() {
  if (stdin_ >= 0) ::close(std::exchange(stdin_, -1));
}

void ChildProcess::send(const google::protobuf::MessageLite& message) {
  if (stdin_ < 0) return;
  const std::string bytes = delimited(message);
  const Deadline deadline = Deadline::after(kSendSeconds);
  const auto part = [&](size_t at) -> ssize_t {
    const ssize_t n = ::write(stdin_, bytes.data() + at, bytes.size() - at);
    if (n >= 0 || errno != EAGAIN || deadline.passed()) return n;
    pollfd p{stdin_, POLLOUT, 0};
    ::poll(&p, 1, deadline.pollMillis());
    errno = EINTR;  // moveAll() tries again
    return -1;
  };
  if (!moveAll(bytes.size(), part)) closeStdin();
}

// waitpid(); true when the child has ended and is forgotten.
bool ChildProcess::reap(int options, int* status) {
  pid_t got = 0;
  while ((got = ::waitpid(pid_, status, options)) < 0 && errno == EINTR) {
  }
  if (got == 0) return false;
  pid_ = -1;
  gone_.raise(Error(ErrorKind::kStopped, "the child process has ended"));
  return true;
}

std::string ChildProcess::ended() {
  int status = 0;
  const pid_t was = pid_;
  if (was < 0 || !reap(WNOHANG, &status)) return "";
  killed_ = WIFSIGNALED(status);
  if (killed_) return fmt::format("process {} was ended by signal {}", was, WTERMSIG(status));
  return WEXITSTATUS(status) ? fmt::format("process {} ended with exit code {}", was, WEXITSTATUS(status)) : "";
}

bool ChildProcess::endsWithin(double seconds) {
  const Deadline deadline = Deadline::after(seconds);
  for (int status = 0; pid_ >= 0 && !reap(WNOHANG, &status); ::usleep(5000))
    if (deadline.passed()) return false;
  return true;
}

// A process that waits for a disk which stands still ends only when that answers.
void ChildProcess::end(double grace) {
  if (grace <= 0) closeStdin();
  const bool ended = endsWithin(grace);
  closeStdin();
  if (ended) return;
  ::kill(pid_, SIGKILL);
  if (endsWithin(kKilledSeconds)) return;
  LOG_WARNING(
      "process {} was killed and has not ended: it waits for a disk, or a file system over a network, that does not "
      "answer, and ends with that wait",
      pid_);
  pid_ = -1;
  gone_.raise(Error(ErrorKind::kStopped, "the child process was given up"));
}

void relayError(const std::string& error) {
  std::istringstream lines(error);
  for (std::string line; std::getline(lines, line);) relayLine(line);
}

std::vector<std::string> ownExecutable() {
  std::vector<std::string> paths{"/proc/self/exe"};
  // Without /proc (in a chroot): the path with which the kernel started this program.
  if (const auto* started = reinterpret_cast<const char*>(::getauxval(AT_EXECFN))) paths.emplace_back(started);
  return paths;
}

}  // namespace crema::host
