// What travels over a connection of two processes behind its handshake: packets, each with its check. A byte that was
// flipped, lost or repeated on the way ends the connection; it is never taken for data.
//
// Bytes of a packet, little endian: head, which is payload size u32, 1 to 65536, and its own check u32 · payload · check.
// - The head's check is the lower half of XXH3-64 of the size, seeded with the number of the packet, so that nobody waits
//   for the bytes of a length that was damaged.
// - Summed: the check is XXH3-64 of the payload, seeded with (number of the packet << 32) + its size; numbers begin with
//   0 in each direction. It finds what TCP's own 16 bits let through, and keeps nobody out.
// - Sealed: payload and check are a message of libsodium's secretstream (XChaCha20-Poly1305, 17 bytes longer than the
//   payload) with the head as additional data. The stream's header, 24 bytes, comes before the first packet.
// The 64 KiB stay in a core's cache between the kernel's copy and ours.
#pragma once
#include <sodium.h>
#include <sys/uio.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace crema {

// Of a connection whose ends share a token: a key for each direction, 32 bytes.
struct PacketKeys {
  std::string out, in;
};

class DamagedPacket : public Error {
 public:
  explicit DamagedPacket(std::string message) : Error(ErrorKind::kPeer, std::move(message)) {}
};

// A thread may read while another one writes.
class Packets {
 public:
  static constexpr size_t kMost = 64u << 10;                             // bytes of a payload
  using Receive = std::function<size_t(void* to, size_t bytes)>;         // as Socket::readSome
  using Send = std::function<size_t(const iovec* parts, size_t count)>;  // as Socket::writeSome, of several parts
  explicit Packets(std::optional<PacketKeys> keys) : keys_(std::move(keys)) {}  // without keys: summed

  // Bytes of the payload that were moved, 0 when receive() would wait; the next call must then be for the same place, as
  // a large summed packet goes straight there. It counts when its check fits. Throws DamagedPacket.
  [[nodiscard]] size_t read(const Receive& receive, void* to, size_t bytes);
  bool ready() const;  // read() has something without receive()
  // Counts a packet when all of it is out. 0: send() would wait; the next call must begin with the same bytes.
  [[nodiscard]] size_t write(const Send& send, const void* from, size_t bytes);
  bool halfSent() const { return payload_ > 0; }

 private:
  bool open(std::string_view packet);  // whether all of it is there
  bool receiveMore(const Receive& receive, size_t most);
  bool beginsDirectly(char* to, size_t room);
  size_t readDirectly(const Receive& receive, const char* to);
  void pack(const void* from, size_t bytes);
  size_t overhead() const;

  const std::optional<PacketKeys> keys_;
  struct Direct {
    char* to = nullptr;
    size_t got = 0, size = 0;  // of the payload; size 0: no packet is halfway into a reader's memory
  };
  // Receiving: in_[at_, filled_) has come and is not opened.
  std::vector<char> in_;
  size_t at_ = 0, filled_ = 0;
  uint64_t received_ = 0;  // packets
  bool started_ = false;   // the stream header has come
  Direct direct_;
  std::string opened_;
  std::string_view plain_;  // what is left of the packet that was opened last
  crypto_secretstream_xchacha20poly1305_state inState_{}, outState_{};
  // Sending: what stands before, in and behind the payload of the present packet.
  std::string before_, behind_;
  const char* from_ = nullptr;
  size_t fromSize_ = 0, payload_ = 0, sent_ = 0;
  uint64_t packed_ = 0;
};

}  // namespace crema
