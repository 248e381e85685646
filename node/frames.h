// Messages with descriptors over an authenticated Unix socket. One thread at a time.
#pragma once
#include <google/protobuf/message_lite.h>

#include "base/socket.h"
#include "node/descriptor.h"

namespace crema::node {

class Frames {
 public:
  explicit Frames(Socket socket) : socket_(std::move(socket)) {}
  // The next message and the descriptor beside it, if one is. kPeer at the end of the connection, and for what is no
  // message.
  [[nodiscard]] Descriptor receive(google::protobuf::MessageLite* message, const Interrupt* interrupt);
  void send(const google::protobuf::MessageLite& message, int descriptor, const Interrupt* interrupt);
  bool peerGone() const { return socket_.peerGone(); }

 private:
  [[nodiscard]] size_t receiveSome(void* to, size_t bytes, Descriptor* beside) const;

  Socket socket_;
};

}  // namespace crema::node
