#include "node/frames.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "base/fd_io.h"
#include "cluster/frame.h"

namespace crema::node {
namespace {

constexpr uint32_t kLargest = 64u << 20;  // bytes: values of the state, error messages
constexpr double kSendSeconds = 30;       // for a client that does not read
constexpr double kForever = 1e8;
constexpr size_t kPart = 256u << 10;  // bytes of a block that are read at once
constexpr double kSilence = 60;       // seconds for each part

}  // namespace

// The descriptor comes with the first byte of the frame that it was sent with, so with its head.
size_t Frames::receiveSome(void* to, size_t bytes, Descriptor* beside) const {
  if (!local_) return socket_.readSome(to, bytes);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
  iovec part{to, bytes};
  msghdr header{};
  header.msg_iov = &part, header.msg_iovlen = 1;
  header.msg_control = control.data(), header.msg_controllen = control.size();
  const ssize_t n = ::recvmsg(socket_.descriptor(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (n <= 0) throw Error(ErrorKind::kPeer, n == 0 ? "connection closed" : systemError(errno));
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<const char*>(c) + at, sizeof fd);
      *beside = Descriptor(fd);  // a further one replaces, and closes, the one before
    }
  }
  return static_cast<size_t>(n);
}

Descriptor Frames::receive(google::protobuf::MessageLite* message, const Interrupt* interrupt) {
  Descriptor beside;
  std::array<unsigned char, cluster::kFrameHead> head{};
  for (size_t at = 0; at < head.size();) {
    socket_.waitToRead(Deadline::after(kForever), interrupt);
    at += receiveSome(head.data() + at, head.size() - at, &beside);
  }
  const uint32_t size = cluster::payloadOf(head);
  if (size > kLargest) throw Error(ErrorKind::kPeer, fmt::format("a message of {} bytes was announced; refused", size));
  std::string bytes(size, '\0');
  socket_.readAll(bytes.data(), size, Deadline::after(kForever), interrupt);
  if (!message->ParseFromString(bytes)) throw Error(ErrorKind::kPeer, "a message came that cannot be read");
  return beside;
}

template <class Take>
void Frames::receiveFollowing(const Interrupt* interrupt, Take take) {
  std::vector<char> part(std::min<uint64_t>(following_, kPart));
  while (following_ > 0) {
    part.resize(std::min<uint64_t>(following_, kPart));
    socket_.readAll(part.data(), part.size(), Deadline::after(kSilence), interrupt);
    following_ -= part.size();
    take(part);
  }
}

// By write(), which says that there is no memory; a page of a mapping that cannot be had ends the process.
Descriptor Frames::receiveBlock(const Interrupt* interrupt) {
  Descriptor memory(::memfd_create("crema-rows", MFD_CLOEXEC));
  const auto refused = [bytes = following_] {
    ioError("there is no memory of {} bytes for a block of rows: {}; {}", bytes, systemError(errno), memoryRemedy());
  };
  if (!memory.open()) refused();
  receiveFollowing(interrupt, [&](const std::vector<char>& part) {
    const auto write = [&](size_t at) { return ::write(memory.get(), part.data() + at, part.size() - at); };
    if (!moveAll(part.size(), write)) refused();
  });
  return memory;
}

void Frames::skip(const Interrupt* interrupt) {
  receiveFollowing(interrupt, [](const std::vector<char>&) {});
}

// Asked of the poll: where bytes wait that were not read, the end of the connection cannot be read either.
bool Frames::peerGone() const {
  pollfd end{socket_.descriptor(), POLLRDHUP, 0};
  return ::poll(&end, 1, 0) > 0;
}

void Frames::send(const google::protobuf::MessageLite& message, int descriptor, const Interrupt* interrupt) {
  std::string bytes = cluster::framed(message);
  const Deadline deadline = Deadline::after(kSendSeconds);
  size_t at = 0;
  while (descriptor >= 0 && at == 0) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec part{bytes.data(), bytes.size()};
    msghdr header{};
    header.msg_iov = &part, header.msg_iovlen = 1;
    header.msg_control = control.data(), header.msg_controllen = control.size();
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &descriptor, sizeof descriptor);
    socket_.waitToWrite(deadline, interrupt);
    const ssize_t n = ::sendmsg(socket_.descriptor(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) at = static_cast<size_t>(n);
    if (n < 0 && errno != EAGAIN && errno != EINTR) throw Error(ErrorKind::kPeer, systemError(errno));
  }
  if (at < bytes.size()) socket_.writeAll(bytes.data() + at, bytes.size() - at, deadline, interrupt);
}

}  // namespace crema::node
