// Messages over an authenticated socket. send() may be called from several threads; receive() from one.
#pragma once
#include <google/protobuf/message_lite.h>

#include <string>

#include "base/mutex.h"
#include "base/socket.h"

namespace crema::cluster {

class Channel {
 public:
  explicit Channel(Socket socket) : socket_(std::move(socket)) {}
  // The interrupt ends only the wait for a peer that does not read: what there is room for is sent although it is
  // raised already. Of a message whose send has failed halfway the rest is sent before the next one.
  void send(const google::protobuf::MessageLite& message, Deadline deadline, const Interrupt* interrupt = nullptr);
  // Throws kPeer when the other end closed the connection or sent bytes that are no message; kTimeout at the deadline.
  void receive(google::protobuf::MessageLite* message, Deadline deadline, const Interrupt* interrupt);
  bool readable() const { return socket_.readable(); }  // receive() begins without waiting

 private:
  void sendRest(Deadline deadline, const Interrupt* interrupt) CREMA_REQUIRES(sending_);

  Socket socket_;
  Mutex sending_;
  std::string frame_ CREMA_GUARDED_BY(sending_);
  size_t sent_ CREMA_GUARDED_BY(sending_) = 0;  // bytes of frame_
};

}  // namespace crema::cluster
