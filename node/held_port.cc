#include "node/held_port.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/error.h"

namespace crema::node {

HeldPort::HeldPort(int port) {
  if (port < 0) return;
  const MutexLock lock(mutex_);
  socket_ = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in a{};
  a.sin_family = AF_INET, a.sin_port = htons(static_cast<uint16_t>(port)), a.sin_addr.s_addr = htonl(INADDR_ANY);
  const int one = 1;
  socklen_t length = sizeof a;
  if (!socket_.open() || ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
      ::bind(socket_.get(), reinterpret_cast<sockaddr*>(&a), length) != 0 ||
      ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&a), &length) != 0) {
    const int code = errno;
    ioError("cannot hold port {} for the program of this node: {}; {}", port, systemError(code),
            port ? "two nodes of one machine cannot have one port: set another TENSORFLOW_PORT, or none"
                 : "free some ports, or widen net.ipv4.ip_local_port_range");
  }
  number_ = ntohs(a.sin_port);
}

Descriptor HeldPort::copy() const {
  const MutexLock lock(mutex_);
  return Descriptor(socket_.open() ? ::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0) : -1);
}

void HeldPort::release() {
  const MutexLock lock(mutex_);
  socket_ = Descriptor();
}

}  // namespace crema::node
