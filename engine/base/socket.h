// TCP with deadlines: every call that can wait takes a Deadline and an optional Interrupt, and throws an Error that
// names the peer. Plain poll() and not Asio: synchronous calls with a deadline are what the protocol needs, and they
// are its smallest form. Addresses are numeric ("10.0.0.4:5012", "[::1]:80"): a static executable has no resolver.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/deadline.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/packets.h"

namespace crema {

// Nobody listens at the address, or there is no route to it.
class Unreachable : public Error {
 public:
  explicit Unreachable(std::string message) : Error(ErrorKind::kPeer, std::move(message)) {}
};

class [[nodiscard]] Socket {
 public:
  Socket() = default;
  explicit Socket(int fd, std::string peer) : fd_(fd), peer_(std::move(peer)) {}
  Socket(Socket&& other) noexcept : fd_(other.fd_), peer_(std::move(other.peer_)), packets_(std::move(other.packets_)) {
    other.fd_ = -1;
  }
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
  bool local() const;  // to a process of this machine, by a Unix socket
  int descriptor() const { return fd_; }
  const std::string& peer() const { return peer_; }
  void setPeer(std::string name) { peer_ = std::move(name); }
  std::string address() const;  // own "host:port"
  void close();
  void shutdownBoth();  // wakes another thread's wait on this socket
  // From now on all bytes travel in packets (base/packets.h), as they must on the other end.
  void protect(std::unique_ptr<Packets> packets) { packets_ = std::move(packets); }

  void readAll(void* to, size_t bytes, Deadline deadline, const Interrupt* interrupt) const;
  void writeAll(const void* from, size_t bytes, Deadline deadline, const Interrupt* interrupt) const;
  void waitToRead(Deadline deadline, const Interrupt* interrupt) const;
  void waitToWrite(Deadline deadline, const Interrupt* interrupt) const;
  // Non-blocking parts for loops of others: bytes moved, 0 when it would block; throws kPeer when the peer is gone or
  // what came was damaged. Where writeSome() has moved less than it was given, the next call must begin with the rest.
  [[nodiscard]] size_t readSome(void* to, size_t bytes) const;
  [[nodiscard]] size_t writeSome(const void* from, size_t bytes) const;
  [[nodiscard]] bool halfSent() const { return packets_ && packets_->halfSent(); }  // of the bytes not yet counted
  [[nodiscard]] bool readable() const;                                              // waitToRead() would not wait
  [[nodiscard]] bool peerGone() const;  // the other end has closed it, and all that it sent was read

 private:
  size_t receive(void* to, size_t bytes) const;
  size_t send(const iovec* parts, size_t count) const;

  int fd_ = -1;
  std::string peer_;
  std::unique_ptr<Packets> packets_;
};

}  // namespace crema
