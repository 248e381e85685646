// TCP with deadlines: every call that can wait takes a Deadline and an optional Interrupt, and throws an Error that
// names the peer. Plain poll() and not Asio: synchronous calls with a deadline are what the protocol needs, and they
// are its smallest form. Addresses are numeric ("10.0.0.4:5012", "[::1]:80"): a static executable has no resolver.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/error.h"
#include "base/mutex.h"

namespace crema {

// Once raised, ends every wait that watches it, now and later, with one reason. Thread-safe.
class Interrupt {
 public:
  Interrupt();
  explicit Interrupt(Interrupt& parent);  // raised with its parent too, which outlives it
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  void raise(Error why);  // later reasons are ignored
  bool raised() const { return raised_.load(std::memory_order_acquire); }
  void check() const;                     // throws the reason when raised
  int descriptor() const { return fd_; }  // readable when raised

 private:
  int fd_;
  std::atomic<bool> raised_{false};
  mutable Mutex mutex_;
  std::unique_ptr<Error> why_ CREMA_GUARDED_BY(mutex_);
  Interrupt* parent_ = nullptr;
  std::set<Interrupt*> children_ CREMA_GUARDED_BY(mutex_);
};

// Sleeps; throws the interrupt's reason as soon as it is raised.
void pauseFor(double seconds, const Interrupt* interrupt);

// Nobody listens at the address, or there is no route to it.
class Unreachable : public Error {
 public:
  explicit Unreachable(std::string message) : Error(ErrorKind::kPeer, std::move(message)) {}
};

class [[nodiscard]] Socket {
 public:
  Socket() = default;
  explicit Socket(int fd, std::string peer) : fd_(fd), peer_(std::move(peer)) {}
  Socket(Socket&& other) noexcept : fd_(other.fd_), peer_(std::move(other.peer_)) { other.fd_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }

  // port 0: the kernel chooses; address() has it. ioError when the host is not numeric or the port is taken.
  static Socket listenOn(const std::string& host, int port);
  // For processes of this machine: a Unix socket in the abstract namespace, of which no file is left behind.
  static Socket listenUnseen(const std::string& name);
  static Socket adoptListener(int descriptor);  // inherited; it is this object's from now on
  // A listener may be a moment late: a refused connection is tried again until `refusedUntil`.
  static Socket connectTo(const std::string& address, Deadline deadline, const Interrupt* interrupt) {
    return connectTo(address, deadline, interrupt, deadline);
  }
  static Socket connectTo(const std::string& address, Deadline deadline, const Interrupt* interrupt,
                          Deadline refusedUntil);
  Socket accept(Deadline deadline, const Interrupt* interrupt) const;  // kTimeout when nobody came

  bool open() const { return fd_ >= 0; }
  int descriptor() const { return fd_; }
  const std::string& peer() const { return peer_; }
  void setPeer(std::string name) { peer_ = std::move(name); }
  std::string address() const;  // own "host:port"
  void close();
  void shutdownBoth();  // wakes another thread's wait on this socket

  void readAll(void* to, size_t bytes, Deadline deadline, const Interrupt* interrupt) const;
  void writeAll(const void* from, size_t bytes, Deadline deadline, const Interrupt* interrupt) const;
  void waitToRead(Deadline deadline, const Interrupt* interrupt) const;
  void waitToWrite(Deadline deadline, const Interrupt* interrupt) const;
  // Non-blocking parts for loops of others: bytes moved, 0 when it would block; throws kPeer when the peer is
  // gone.
  [[nodiscard]] size_t readSome(void* to, size_t bytes) const;
  [[nodiscard]] size_t writeSome(const void* from, size_t bytes) const;
  [[nodiscard]] bool peerGone() const;  // the other end has closed it, and all that it sent was read

 private:
  int fd_ = -1;
  std::string peer_;
};

}  // namespace crema
