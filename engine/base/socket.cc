#include "base/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace crema {

namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Address parseAddress(std::string host, int port) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  Address a;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&a.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&a.storage);
  if (::inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET, v4->sin_port = htons(static_cast<uint16_t>(port)), a.length = sizeof *v4;
  } else if (::inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6, v6->sin6_port = htons(static_cast<uint16_t>(port)), a.length = sizeof *v6;
  } else {
    invalid("'{}' is not a numeric address; give an IPv4 or IPv6 address, names cannot be resolved here", host);
  }
  return a;
}

Address parseAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon != std::string::npos) port = std::atoi(address.c_str() + colon + 1);
  if (colon == std::string::npos || port <= 0 || port > 65535)
    invalid("'{}' is not an address; expected host:port", address);
  return parseAddress(address.substr(0, colon), port);
}

int streamSocket(const Address& a) {
  const int fd = ::socket(a.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) ioError("cannot make a socket: {}; raise the limit of open files (ulimit -n)", systemError(errno));
  return fd;
}

std::string text(const sockaddr_storage& s) {
  if (s.ss_family == AF_UNIX) return "a process of this machine";
  char host[INET6_ADDRSTRLEN] = "?";
  if (s.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&s);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
    return fmt::format("[{}]:{}", host, ntohs(v6->sin6_port));
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&s);
  ::inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
  return fmt::format("{}:{}", host, ntohs(v4->sin_port));
}

// Waits until the descriptor is ready; throws when the deadline passes or the interrupt is raised.
void await(int fd, short events, Deadline deadline, const Interrupt* interrupt, const char* what,
           const std::string& peer) {
  for (;;) {
    pollfd p[2] = {{fd, events, 0}, {interrupt ? interrupt->descriptor() : -1, POLLIN, 0}};
    const int n = ::poll(p, 2, deadline.pollMillis());
    if (interrupt) interrupt->check();
    if (p[0].revents) return;
    if (n < 0 && errno != EINTR) ioError("poll: {}", systemError(errno));
    if (deadline.passed())
      throw Error(ErrorKind::kTimeout, fmt::format("{} {}: nothing happened before the deadline", what, peer));
  }
}

void prepare(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  const int buffer = 4 << 20;  // bytes: holds one worker's part of LeNet's gradient
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.fd_, peer_ = std::move(other.peer_), packets_ = std::move(other.packets_);
    other.fd_ = -1;
  }
  return *this;
}

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void Socket::shutdownBoth() {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_RDWR);
}

Socket Socket::listenOn(const std::string& host, int port) {
  const Address a = parseAddress(host, port);
  Socket s(streamSocket(a), "listener");
  const int one = 1;
  ::setsockopt(s.fd_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(s.fd_, a.get(), a.length) != 0 || ::listen(s.fd_, 1024) != 0)
    ioError("cannot listen on {}:{}: {}; choose another port or an address of this machine", host, port,
            systemError(errno));
  return s;
}

Socket Socket::listenUnseen(const std::string& name) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  if (name.empty() || name.size() >= sizeof a.sun_path)
    invalid("'{}' cannot be the name of a socket: 1 to {} bytes are", name, sizeof a.sun_path - 1);
  name.copy(a.sun_path + 1, name.size());
  Socket s(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "listener");
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (s.fd_ < 0 || ::bind(s.fd_, reinterpret_cast<sockaddr*>(&a), length) != 0 || ::listen(s.fd_, 1024) != 0)
    ioError("cannot make the socket @{} for processes of this machine: {}", name, systemError(errno));
  return s;
}

Socket Socket::adoptListener(int descriptor) {
  Socket s(descriptor, "listener");
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &length) != 0)
    invalid("descriptor {} is no listening socket: {}", descriptor, systemError(errno));
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return s;
}

std::string Socket::address() const {
  sockaddr_storage s{};
  socklen_t length = sizeof s;
  ::getsockname(fd_, reinterpret_cast<sockaddr*>(&s), &length);
  return text(s);
}

bool Socket::local() const {
  sockaddr_storage s{};
  socklen_t length = sizeof s;
  return ::getsockname(fd_, reinterpret_cast<sockaddr*>(&s), &length) == 0 && s.ss_family == AF_UNIX;
}

Socket Socket::connectTo(const std::string& address, Deadline deadline, const Interrupt* interrupt,
                         Deadline refusedUntil) {
  const Address a = parseAddress(address);
  for (double pause = 0.02;; pause = std::min(pause * 2, 0.5)) {
    Socket s(streamSocket(a), address);
    int failed = 0;
    if (::connect(s.fd_, a.get(), a.length) != 0) failed = errno;
    if (failed == EINPROGRESS) {
      await(s.fd_, POLLOUT, deadline, interrupt, "connecting to", address);
      socklen_t length = sizeof failed;
      ::getsockopt(s.fd_, SOL_SOCKET, SO_ERROR, &failed, &length);
    }
    if (failed == 0) {
      prepare(s.fd_);
      return s;
    }
    const Deadline last = failed == ECONNREFUSED ? Deadline::earlier(deadline, refusedUntil) : deadline;
    if (last.left() < pause) throw Unreachable(fmt::format("cannot connect to {}: {}", address, systemError(failed)));
    pauseFor(pause, interrupt);
  }
}

Socket Socket::accept(Deadline deadline, const Interrupt* interrupt) const {
  for (;;) {
    await(fd_, POLLIN, deadline, interrupt, "waiting for a connection on", address());
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    const int fd = ::accept4(fd_, reinterpret_cast<sockaddr*>(&from), &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      prepare(fd);
      return Socket(fd, text(from));
    }
    if (errno == EMFILE || errno == ENFILE)
      ioError("accept: {}; raise the limit of open files (ulimit -n)", systemError(errno));
  }
}

size_t Socket::readSome(void* to, size_t bytes) const {
  if (!packets_) return receive(to, bytes);
  try {
    return packets_->read([this](void* at, size_t most) { return receive(at, most); }, to, bytes);
  } catch (const DamagedPacket& e) {
    throw Error(ErrorKind::kPeer, fmt::format("recv from {}: {}", peer_, e.message()));
  }
}

size_t Socket::receive(void* to, size_t bytes) const {
  const ssize_t n = ::recv(fd_, to, bytes, 0);
  if (n > 0) return static_cast<size_t>(n);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  const std::string why = n == 0 ? "connection closed" : systemError(errno);
  throw Error(ErrorKind::kPeer, fmt::format("recv from {}: {}", peer_, why));
}

bool Socket::readable() const {
  if (packets_ && packets_->ready()) return true;
  pollfd p{fd_, POLLIN, 0};
  return ::poll(&p, 1, 0) > 0;
}

bool Socket::peerGone() const {
  if (packets_ && packets_->ready()) return false;
  char next;
  const ssize_t n = ::recv(fd_, &next, 1, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

size_t Socket::writeSome(const void* from, size_t bytes) const {
  if (packets_) return packets_->write([this](const iovec* parts, size_t n) { return send(parts, n); }, from, bytes);
  const iovec all{const_cast<void*>(from), bytes};
  return send(&all, 1);
}

size_t Socket::send(const iovec* parts, size_t count) const {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts), message.msg_iovlen = count;
  const ssize_t n = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
  if (n >= 0) return static_cast<size_t>(n);
  if (errno == EAGAIN || errno == EINTR) return 0;
  throw Error(ErrorKind::kPeer, fmt::format("send to {}: {}", peer_, systemError(errno)));
}

void Socket::readAll(void* to, size_t bytes, Deadline deadline, const Interrupt* interrupt) const {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    waitToRead(deadline, interrupt);
    const size_t n = readSome(at, bytes);
    at += n, bytes -= n;
  }
}

void Socket::writeAll(const void* from, size_t bytes, Deadline deadline, const Interrupt* interrupt) const {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    waitToWrite(deadline, interrupt);
    const size_t n = writeSome(at, bytes);
    at += n, bytes -= n;
  }
}

void Socket::waitToRead(Deadline deadline, const Interrupt* interrupt) const {
  if (packets_ && packets_->ready()) {
    if (interrupt) interrupt->check();
    return;
  }
  await(fd_, POLLIN, deadline, interrupt, "recv from", peer_);
}

void Socket::waitToWrite(Deadline deadline, const Interrupt* interrupt) const {
  await(fd_, POLLOUT, deadline, interrupt, "send to", peer_);
}

}  // namespace crema
