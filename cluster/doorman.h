// Turns what authenticated workers say into one queue; the door (base/door.h) keeps strangers out.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <string>

#include "base/door.h"
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

  static constexpr size_t kMostWaiting = 64;  // messages; a worker that sends more waits: a model comes in many pieces

  Doorman(const std::string& host, int port, std::string token);
  std::string address() const { return door_.address(); }
  std::optional<Incoming> next(Deadline deadline, const Interrupt* stop);  // nothing came before the deadline: nullopt

 private:
  void listenTo(Socket socket, const Interrupt& closing);
  void push(Incoming in, const Interrupt& closing);

  std::mutex mutex_;
  std::condition_variable arrived_, room_;
  std::queue<Incoming> queue_;
  Door door_;  // the last member: its visitors use the others
};

}  // namespace crema::cluster
