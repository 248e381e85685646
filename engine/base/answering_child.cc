#include "base/answering_child.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <utility>

#include "base/child.h"
#include "base/child_answer.h"
#include "base/deadline.h"
#include "base/error.h"
#include "base/fd_io.h"

namespace crema {
namespace {

// Both ways: size u64, bytes.
bool readAll(int fd, void* to, size_t bytes) {
  const auto part = [&](size_t at) { return ::read(fd, static_cast<char*>(to) + at, bytes - at); };
  return moveAll(bytes, part);
}

bool writeAll(int fd, const void* from, size_t bytes) {
  const auto part = [&](size_t at) {
    return ::send(fd, static_cast<const char*>(from) + at, bytes - at, MSG_NOSIGNAL);
  };
  return moveAll(bytes, part);
}

// A forked child inherits all open descriptors; a peer would wait for the end of a connection that the child still
// holds open.
void closeOthers(int kept) {
  if (kept > 0) ::close_range(0, static_cast<unsigned>(kept) - 1, 0);
  ::close_range(static_cast<unsigned>(kept) + 1, ~0u, 0);
}

[[noreturn]] void serve(int fd, const ChildLimits& limits, const std::function<std::string(std::string_view)>& answer) {
  closeOthers(fd);
  prepareChild(limits.bytes);
  ::signal(SIGALRM, SIG_DFL);
  for (uint64_t size = 0; readAll(fd, &size, sizeof size);) {
    ::alarm(static_cast<unsigned>(std::ceil(limits.seconds)) + 1);
    bool read = true;
    const std::string said = answerOf([&] {
      std::string request(size, '\0');
      read = readAll(fd, request.data(), size);
      return read ? answer(request) : std::string();
    });
    const uint64_t bytes = said.size();
    if (!read || !writeAll(fd, &bytes, sizeof bytes) || !writeAll(fd, said.data(), bytes)) break;
    ::alarm(0);
  }
  ::_exit(0);
}

}  // namespace

AnsweringChild::AnsweringChild(const ChildLimits& limits, std::function<std::string(std::string_view)> answer)
    : limits_(limits) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    ioError("cannot make a pair of sockets: {}; raise the limit of open files", systemError(errno));
  pid_ = ::fork();
  const int code = errno;
  if (pid_ == 0) serve(ends[1], limits, answer);
  ::close(ends[1]);
  fd_ = ends[0];
  if (pid_ > 0) return;
  ::close(fd_);
  ioError("cannot start a process: {}; {}", systemError(code), startRemedy(code));
}

AnsweringChild::~AnsweringChild() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);  // it only reads
  end();
}

void AnsweringChild::end() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  int status = 0;
  if (pid_ <= 0) return;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (died_.empty()) died_ = howItEnded(status);
}

bool AnsweringChild::receive(void* to, size_t bytes) const {
  const Deadline deadline = Deadline::after(limits_.seconds);
  for (size_t have = 0; have < bytes;) {
    if (deadline.passed()) return false;
    pollfd p{fd_, POLLIN, 0};
    if (::poll(&p, 1, deadline.pollMillis()) <= 0) continue;
    const ssize_t n = ::read(fd_, static_cast<char*>(to) + have, bytes - have);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    have += static_cast<size_t>(n);
  }
  return true;
}

// A child that is stopped leaves no room for a large request.
bool AnsweringChild::send(std::string_view bytes) const {
  const Deadline deadline = Deadline::after(limits_.seconds);
  while (!bytes.empty()) {
    if (deadline.passed()) return false;
    pollfd p{fd_, POLLOUT, 0};
    if (::poll(&p, 1, deadline.pollMillis()) <= 0) continue;
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

ChildResult AnsweringChild::ask(std::string_view request) {
  const MutexLock lock(mutex_);
  if (!died_.empty()) return {"", died_};
  std::string message(sizeof(uint64_t), '\0');
  const uint64_t size = request.size();
  std::memcpy(message.data(), &size, sizeof size);
  message += request;
  uint64_t bytes = 0;
  std::string answer;
  const double started = monotonicSeconds();
  bool whole = send(message) && receive(&bytes, sizeof bytes);
  if (whole && bytes > static_cast<uint64_t>(limits_.bytes)) {  // what it reads has damaged it
    died_ = fmt::format("announced an answer of {} bytes, and {} MiB are its limit", bytes, limits_.bytes >> 20);
    whole = false;
  }
  if (whole) {
    answer.resize(bytes);
    whole = receive(answer.data(), bytes);
  }
  if (!whole) {
    if (died_.empty() && monotonicSeconds() - started >= limits_.seconds)
      died_ = fmt::format("did not answer within {:.3g} seconds", limits_.seconds);
    ::kill(pid_, SIGKILL);
    end();
    return {"", died_};
  }
  return resultOf(std::move(answer), limits_);
}

}  // namespace crema
