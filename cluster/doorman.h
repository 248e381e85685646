// Collects the messages of all authenticated members in one queue; base/door.h does the authentication.
#pragma once
#include <condition_variable>
#include <functional>
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
    control::ToCoordinator message;   // empty when `lost` is set
    std::string lost;                 // why the connection ended
    std::function<void()> call = {};  // what post() brought; `from` is empty
  };

  // How many messages the queue holds. While it is full, senders wait: a model comes in many pieces.
  static constexpr size_t kMostWaiting = 64;

  // listener: a listening socket that becomes the door's; -1: host and port have a new one.
  Doorman(const std::string& host, int port, Secret secret, int listener = -1);
  std::string address() const { return door_.address(); }
  [[nodiscard]] std::optional<Incoming> next(Deadline deadline, const Interrupt* stop);  // nullopt at the deadline
  void post(std::function<void()> call);  // to be called by who takes it from the queue; from any thread, never waits

 private:
  void listenTo(Socket socket, const Interrupt& closing);
  void push(Incoming in, const Interrupt& closing);

  Mutex mutex_;
  std::condition_variable arrived_, room_;
  std::queue<Incoming> queue_ CREMA_GUARDED_BY(mutex_);
  Door door_;  // the last member: its threads use the others
};

}  // namespace crema::cluster
