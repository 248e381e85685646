#include "base/packets.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/packet_sum.h"

namespace crema {
namespace {

constexpr size_t kSize = 4, kHead = kSize + 4, kSum = 8, kSeal = crypto_secretstream_xchacha20poly1305_ABYTES,
                 kStart = crypto_secretstream_xchacha20poly1305_HEADERBYTES;
constexpr size_t kDirect = 4u << 10;  // payloads from here on are worth a system call of their own
constexpr size_t kSmallest = 4u << 10, kLargest = 256u << 10;  // of the buffer; it grows with what comes

unsigned char* bytes(char* p) { return reinterpret_cast<unsigned char*>(p); }
const unsigned char* bytes(const char* p) { return reinterpret_cast<const unsigned char*>(p); }

uint64_t sumOf(const char* payload, size_t size, uint64_t number) {
  return packetSum(payload, size, (number << 32) + size);
}

// Of a packet's size and number: a size that was damaged is not waited for.
uint32_t headSumOf(uint32_t size, uint64_t number) {
  return static_cast<uint32_t>(packetSum(&size, sizeof size, number));
}

// Of the payload, as the head says; 0 for a head that was damaged.
size_t sizeIn(const char* head, uint64_t number) {
  uint32_t size = 0, sum = 0;
  std::memcpy(&size, head, kSize);
  std::memcpy(&sum, head + kSize, sizeof sum);
  return size <= Packets::kMost && sum == headSumOf(size, number) ? size : 0;
}

DamagedPacket damaged(uint64_t number, size_t size) {
  return DamagedPacket(
      fmt::format("packet {} of {} bytes was damaged on the way: its check does not fit", number, size));
}

template <class T>
void append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

size_t Packets::overhead() const { return kHead + (keys_ ? kSeal : kSum); }

void Packets::pack(const void* from, size_t size) {
  before_.clear(), behind_.clear();
  sent_ = 0, payload_ = std::min(size, kMost);
  const auto* payload = static_cast<const char*>(from);
  if (keys_ && packed_ == 0) {
    before_.resize(kStart);
    crypto_secretstream_xchacha20poly1305_init_push(&outState_, bytes(before_.data()), bytes(keys_->out.data()));
  }
  append(before_, static_cast<uint32_t>(payload_));
  append(before_, headSumOf(static_cast<uint32_t>(payload_), packed_));
  if (keys_) {
    const size_t head = before_.size() - kHead, at = before_.size();
    before_.resize(at + payload_ + kSeal);
    crypto_secretstream_xchacha20poly1305_push(&outState_, bytes(before_.data() + at), nullptr, bytes(payload),
                                               payload_, bytes(before_.data() + head), kHead, 0);
    fromSize_ = 0;
  } else {
    from_ = payload, fromSize_ = payload_;
    append(behind_, sumOf(payload, payload_, packed_));
  }
  ++packed_;
}

bool Packets::ready() const {
  if (direct_.size > 0) return false;
  const size_t start = keys_ && !started_ ? kStart : 0, have = filled_ - at_;
  if (!plain_.empty() || have < start + kHead) return !plain_.empty();
  const size_t size = sizeIn(in_.data() + at_ + start, received_);
  return size == 0 || have >= start + size + overhead();
}

size_t Packets::write(const Send& send, const void* from, size_t size) {
  if (size == 0) return 0;
  if (payload_ == 0) pack(from, size);
  for (;;) {
    std::array<iovec, 3> parts{};
    size_t count = 0, skip = sent_, left = 0;
    for (const std::string_view part :
         {std::string_view(before_), std::string_view(from_, fromSize_), std::string_view(behind_)}) {
      const size_t first = std::min(skip, part.size());
      skip -= first;
      if (first == part.size()) continue;
      parts[count++] = {const_cast<char*>(part.data() + first), part.size() - first};
      left += part.size() - first;
    }
    const size_t n = send(parts.data(), count);
    sent_ += n;
    if (n == left) return std::exchange(payload_, 0);
    if (n == 0) return 0;
  }
}

// The first packet's stream header is part of `packet` no more: read() has taken it.
bool Packets::open(std::string_view packet) {
  if (packet.size() < kHead) return false;
  const size_t size = sizeIn(packet.data(), received_);
  if (size == 0)
    throw DamagedPacket(
        fmt::format("packet {} was damaged on the way: the check of its length does not fit", received_));
  if (packet.size() < size + overhead()) return false;
  bool whole = false;
  if (keys_) {
    opened_.resize(kMost);
    whole = crypto_secretstream_xchacha20poly1305_pull(&inState_, bytes(opened_.data()), nullptr, nullptr,
                                                       bytes(packet.data() + kHead), size + kSeal, bytes(packet.data()),
                                                       kHead) == 0;
    plain_ = {opened_.data(), size};
  } else {
    plain_ = packet.substr(kHead, size);
    uint64_t sum = 0;
    std::memcpy(&sum, packet.data() + kHead + size, kSum);
    whole = sum == sumOf(plain_.data(), size, received_);
  }
  if (!whole) {
    plain_ = {};
    throw damaged(received_, size);
  }
  ++received_;
  at_ += size + overhead();
  return true;
}

// Into the buffer, `most` bytes of what has come. False: receive() would wait.
bool Packets::receiveMore(const Receive& receive, size_t most) {
  if (at_ == filled_) at_ = filled_ = 0;
  if (filled_ == in_.size()) {
    std::copy(in_.begin() + static_cast<ptrdiff_t>(at_), in_.begin() + static_cast<ptrdiff_t>(filled_), in_.begin());
    filled_ -= at_, at_ = 0;
    if (in_.empty()) in_.resize(kSmallest);
    if (in_.size() < kLargest && filled_ > in_.size() / 2) in_.resize(std::min(kLargest, in_.size() * 4));
  }
  const size_t n = receive(in_.data() + filled_, std::min(most, in_.size() - filled_));
  filled_ += n;
  return n > 0;
}

// Whether the packet that has begun to come goes into the reader's memory; what is in the buffer is moved there.
bool Packets::beginsDirectly(char* to, size_t room) {
  if (keys_ || filled_ - at_ < kHead) return false;
  const size_t size = sizeIn(in_.data() + at_, received_);
  if (size > room || size < kDirect) return false;
  const size_t here = std::min(size, filled_ - at_ - kHead);
  std::copy_n(in_.data() + at_ + kHead, here, to);
  at_ += kHead + here;
  direct_ = {to, here, size};
  return true;
}

// The rest of it. With the sum, no more than the next packet's head is taken into the buffer.
size_t Packets::readDirectly(const Receive& receive, const char* to) {
  if (to != direct_.to) internal("a packet is halfway in other memory than what is read into now");
  while (direct_.got < direct_.size) {
    const size_t n = receive(direct_.to + direct_.got, direct_.size - direct_.got);
    if (n == 0) return 0;
    direct_.got += n;
  }
  while (filled_ - at_ < kSum)
    if (!receiveMore(receive, kSum + kHead - (filled_ - at_))) return 0;
  uint64_t sum = 0;
  std::memcpy(&sum, in_.data() + at_, kSum);
  if (sum != sumOf(to, direct_.size, received_)) throw damaged(received_, direct_.size);
  ++received_;
  at_ += kSum;
  return std::exchange(direct_.size, 0);
}

size_t Packets::read(const Receive& receive, void* to, size_t size) {
  if (direct_.size > 0) return readDirectly(receive, static_cast<char*>(to));
  while (plain_.empty()) {
    if (keys_ && !started_ && filled_ - at_ >= kStart) {
      if (crypto_secretstream_xchacha20poly1305_init_pull(&inState_, bytes(in_.data() + at_),
                                                          bytes(keys_->in.data())) != 0)
        throw DamagedPacket("the start of a sealed connection was damaged on the way");
      at_ += kStart, started_ = true;
    }
    if ((!keys_ || started_) && open({in_.data() + at_, filled_ - at_})) break;
    if (beginsDirectly(static_cast<char*>(to), size)) return readDirectly(receive, static_cast<char*>(to));
    const bool head = !keys_ && at_ == filled_ && size >= kDirect;  // alone: the payload need not pass through here
    if (!receiveMore(receive, head ? kHead : kLargest)) return 0;
  }
  const size_t n = std::min(size, plain_.size());
  std::memcpy(to, plain_.data(), n);
  plain_.remove_prefix(n);
  return n;
}

}  // namespace crema
