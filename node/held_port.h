// The program's port, from its choice to the end of the program without a gap in which another process could take it: a
// socket that is bound and does not listen. Linux lets a second socket bind the same port when both ask for
// SO_REUSEADDR and neither listens yet, as gRPC's servers (TensorFlow's) do, and never gives the port to who asks for any.
#pragma once
#include <string>

#include "base/mutex.h"
#include "node/descriptor.h"

namespace crema::node {

class HeldPort {
 public:
  // port 0: the kernel chooses; -1: none is held. kIo when it is taken.
  explicit HeldPort(int port);
  int number() const { return number_; }  // 0: none
  // Another descriptor of the socket, for a client; none when it has been released. From any thread, as release().
  Descriptor copy() const;
  void release();  // for a program that binds without SO_REUSEADDR

 private:
  mutable Mutex mutex_;
  Descriptor socket_ CREMA_GUARDED_BY(mutex_);
  int number_ = 0;
};

}  // namespace crema::node
