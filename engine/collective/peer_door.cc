#include "collective/peer_door.h"

#include "base/waiting.h"

namespace crema::collective {

PeerDoor::PeerDoor(const std::string& host, const Secret& secret, const std::string& whose)
    : door_(Socket::listenOn(host, 0), secret, "data", whose,
            [this](Socket socket, const Interrupt& closing) { welcome(std::move(socket), closing); }) {}

// The first frame of an authenticated client is a hello, which names its worker and generation.
void PeerDoor::welcome(Socket socket, const Interrupt& closing) {
  FrameHeader hello{};
  socket.readAll(&hello, sizeof hello, Deadline::after(Door::kProofSeconds), &closing);
  if (hello.magic != FrameHeader::kMagic || hello.round != FrameHeader::kHello || hello.bytes != 0) return;
  const MutexLock lock(mutex_);
  if (socket.peerGone()) return;
  waiting_[{hello.generation, hello.worker}] = std::move(socket);
  arrived_.notify_all();
}

std::optional<Socket> PeerDoor::take(uint32_t worker, uint32_t generation, Deadline deadline,
                                     const Interrupt* interrupt) {
  MutexLock lock(mutex_);
  const std::pair<uint32_t, uint32_t> whose{generation, worker};
  waiting_.erase(waiting_.begin(), waiting_.lower_bound({generation, 0}));
  const auto there = [&]() CREMA_REQUIRES(mutex_) {
    const auto found = waiting_.find(whose);
    if (found == waiting_.end()) return false;
    if (!found->second.peerGone()) return true;
    waiting_.erase(found);  // a connection of an earlier, abandoned attempt
    return false;
  };
  if (!waitUntil(arrived_, lock, deadline, interrupt, there)) return std::nullopt;
  return std::move(waiting_.extract(whose).mapped());
}

}  // namespace crema::collective
