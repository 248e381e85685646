// Messages over an authenticated socket. send() may be called from several threads; receive() from one.
#pragma once
#include <google/protobuf/message_lite.h>

#include <mutex>

#include "base/socket.h"

namespace crema::cluster {

class Channel {
 public:
  explicit Channel(Socket socket) : socket_(std::move(socket)) {}
  void send(const google::protobuf::MessageLite& message, Deadline deadline);
  // kPeer when the other end closed or sent what is no message; kTimeout at the deadline.
  void receive(google::protobuf::MessageLite* message, Deadline deadline, const Interrupt* interrupt);

 private:
  Socket socket_;
  std::mutex sending_;
};

}  // namespace crema::cluster
