// Messages over an authenticated socket. send() may be called from several threads; receive() from one.
#pragma once
#include <google/protobuf/message_lite.h>

#include "base/mutex.h"
#include "base/socket.h"

namespace crema::cluster {

class Channel {
 public:
  explicit Channel(Socket socket) : socket_(std::move(socket)) {}
  void send(const google::protobuf::MessageLite& message, Deadline deadline);
  // Throws kPeer when the other end closed the connection or sent bytes that are no message; kTimeout at the deadline.
  void receive(google::protobuf::MessageLite* message, Deadline deadline, const Interrupt* interrupt);

 private:
  Socket socket_;
  Mutex sending_;
};

}  // namespace crema::cluster
