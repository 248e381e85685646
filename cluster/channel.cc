#include "cluster/channel.h"

#include <cstdint>
#include <string>

#include "cluster/frame.h"

namespace crema::cluster {
namespace {
constexpr uint32_t kLargest = 16u << 20;
}

void Channel::send(const google::protobuf::MessageLite& message, Deadline deadline, const Interrupt* interrupt) {
  std::string bytes = framed(message);
  if (bytes.size() - kFrameHead > kLargest)  // the other end would refuse it and take this process for lost
    invalid("a message to {} has {} bytes, and at most {} are taken; are the outputs of the TEST net that large?",
            socket_.peer(), bytes.size() - kFrameHead, kLargest);
  const MutexLock lock(sending_);
  sendRest(deadline, interrupt);
  frame_ = std::move(bytes), sent_ = 0;
  try {
    sendRest(deadline, interrupt);
  } catch (...) {
    if (sent_ == 0 && !socket_.halfSent()) frame_.clear();
    throw;
  }
}

void Channel::sendRest(Deadline deadline, const Interrupt* interrupt) {
  while (sent_ < frame_.size()) {
    const size_t n = socket_.writeSome(frame_.data() + sent_, frame_.size() - sent_);
    sent_ += n;
    if (n == 0) socket_.waitToWrite(deadline, interrupt);
  }
}

void Channel::receive(google::protobuf::MessageLite* message, Deadline deadline, const Interrupt* interrupt) {
  std::array<unsigned char, kFrameHead> head{};
  socket_.readAll(head.data(), head.size(), deadline, interrupt);
  const uint32_t size = payloadOf(head);
  if (size > kLargest)
    throw Error(ErrorKind::kPeer, fmt::format("{} announced a message of {} bytes; refused", socket_.peer(), size));
  std::string bytes(size, '\0');
  socket_.readAll(bytes.data(), size, deadline, interrupt);
  if (!message->ParseFromString(bytes))
    throw Error(ErrorKind::kPeer, fmt::format("{} sent a message that cannot be read; refused", socket_.peer()));
}

}  // namespace crema::cluster
