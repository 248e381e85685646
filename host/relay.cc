#include "host/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "base/door.h"
#include "cluster/frame.h"

namespace crema::host {
namespace {

constexpr uint32_t kLongestToken = 4096;
constexpr size_t kPart = 256u << 10;
constexpr double kLastBytes = 30;  // seconds for what has come when the other end closes

// One direction; what has come and is not yet sent on is part[at, size).
struct Way {
  const Socket& from;
  const Socket& to;
  std::vector<char> part = std::vector<char>(kPart);
  size_t at = 0, size = 0;

  bool empty() const { return at == size; }
  // Whether something moved. Throws kPeer when `from` has closed, or `to`.
  bool move() {
    bool moved = false;
    if (empty()) size = from.readSome(part.data(), part.size()), at = 0, moved = size > 0;
    if (empty()) return moved;
    const size_t n = to.writeSome(part.data() + at, size - at);
    at += n;
    return moved || n > 0;
  }
};

void carry(const Socket& here, const Socket& there) {
  Way out{here, there}, back{there, here};
  try {
    for (;;) {
      bool moved = out.move();
      moved = back.move() || moved;
      if (moved) continue;
      std::array<pollfd, 2> polls{{{here.descriptor(), 0, 0}, {there.descriptor(), 0, 0}}};
      polls[0].events = static_cast<short>((out.empty() ? POLLIN : 0) | (back.empty() ? 0 : POLLOUT));
      polls[1].events = static_cast<short>((back.empty() ? POLLIN : 0) | (out.empty() ? 0 : POLLOUT));
      ::poll(polls.data(), polls.size(), -1);
    }
  } catch (const Error&) {  // one end has closed: what came from it before still goes to the other
    for (const Way* way : {&out, &back})
      if (!way->empty())
        way->to.writeAll(way->part.data() + way->at, way->size - way->at, Deadline::after(kLastBytes), nullptr);
  }
}

std::string sizeAndText(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i < cluster::kFrameHead; ++i) bytes += static_cast<char>(text.size() >> (8 * i) & 255);
  return bytes + text;
}

}  // namespace

void relay(const std::string& address, const std::string& purpose, double seconds) {
  const Deadline deadline = Deadline::after(seconds);
  struct stat in {};
  if (::fstat(STDIN_FILENO, &in) != 0 || !S_ISSOCK(in.st_mode))
    invalid("`crema relay` is for the package tensorflowonspark, which starts it with a socket as its stdin");
  ::fcntl(STDIN_FILENO, F_SETFL, ::fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
  const Socket here(STDIN_FILENO, "the process that started this one");
  std::array<unsigned char, cluster::kFrameHead> head{};
  here.readAll(head.data(), head.size(), deadline, nullptr);
  const uint32_t size = cluster::payloadOf(head);
  if (size > kLongestToken) invalid("a token of {} bytes was announced; at most {} are taken", size, kLongestToken);
  std::string token(size, '\0');
  here.readAll(token.data(), token.size(), deadline, nullptr);
  Socket there;
  try {
    there = connectThroughDoor(address, token, purpose, deadline, nullptr, deadline);
  } catch (const Error& e) {
    const std::string answer = "-" + sizeAndText(e.message());
    return here.writeAll(answer.data(), answer.size(), Deadline::after(kLastBytes), nullptr);
  }
  here.writeAll("+", 1, deadline, nullptr);
  carry(here, there);
}

}  // namespace crema::host
