// Collects the messages of all authenticated members in one queue; base/door.h does the authentication.
#pragma once
#include <condition_variable>
#include <memory>
#include <optional>
#include <queue>
#include <string>

#include "base/door.h"
#include "base/mutex.h"
#include "cluster/channel.h"
#include "control.pb.h"

namespace crema::cluster {

class Doorman {
 public:
  struct Incoming {
    std::shared_ptr<Channel> from;
    control::ToCoordinator message;  // empty when `lost` is set
    std::string lost;                // why the connection ended
  };

  // How many messages the queue holds. While it is full, senders wait: a model comes in many pieces.
  static constexpr size_t kMostWaiting = 64;

  Doorman(const std::string& host, int port, std::string token);
  std::string address() const { return door_.address(); }
  [[nodiscard]] std::optional<Incoming> next(Deadline deadline, const Interrupt* stop);  // nullopt at the deadline

 private:
  void listenTo(Socket socket, const Interrupt& closing);
  void push(Incoming in, const Interrupt& closing);

  Mutex mutex_;
  std::condition_variable arrived_, room_;
  std::queue<Incoming> queue_ CREMA_GUARDED_BY(mutex_);
  Door door_;  // the last member: its threads use the others
};

}  // namespace crema::cluster
