// Messages with descriptors over an authenticated socket; descriptors only from processes of this machine. One thread at a time.
#pragma once
#include <google/protobuf/message_lite.h>

#include <cstdint>

#include "base/socket.h"
#include "node/descriptor.h"

namespace crema::node {

class Frames {
 public:
  explicit Frames(Socket socket) : local_(socket.local()), socket_(std::move(socket)) {}
  // The next message and the descriptor beside it, if one is. kPeer at the end of the connection, and for what is no
  // message.
  [[nodiscard]] Descriptor receive(google::protobuf::MessageLite* message, const Interrupt* interrupt);
  // So many bytes of a block follow the last message. They stay where they are, and so with who sends them, until
  // receiveBlock() takes them, into memory without a name, or skip() throws away what is left of them. kPeer when none
  // come for a while.
  void expect(uint64_t bytes) { following_ = bytes; }
  [[nodiscard]] Descriptor receiveBlock(const Interrupt* interrupt);
  void skip(const Interrupt* interrupt);
  void send(const google::protobuf::MessageLite& message, int descriptor, const Interrupt* interrupt);
  bool peerGone() const;  // it sends no more

 private:
  template <class Take>
  void receiveFollowing(const Interrupt* interrupt, Take take);
  [[nodiscard]] size_t receiveSome(void* to, size_t bytes, Descriptor* beside) const;

  const bool local_;  // descriptors can come
  Socket socket_;
  uint64_t following_ = 0;
};

}  // namespace crema::node
