// Lets authenticated workers in: accepts connections, demands the proof of the token, turns what workers say into one
// queue. Every connection has a thread that only waits; a stranger is cut off after a few seconds, and at most
// kMostPending may knock at once.
#pragma once
#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <string>
#include <thread>

#include "cluster/channel.h"
#include "control.pb.h"

namespace crema {

class Doorman {
 public:
  struct Incoming {
    std::shared_ptr<Channel> from;
    control::ToCoordinator message;  // empty when `lost` is set
    std::string lost;                // why the connection ended
  };

  Doorman(const std::string& host, int port, std::string token);
  ~Doorman();
  std::string address() const { return listener_.address(); }
  std::optional<Incoming> next(Deadline deadline, const Interrupt* stop);  // nothing came before the deadline: nullopt

 private:
  static constexpr int kMostPending = 64;
  void acceptAll();
  void serve(Socket socket);

  Socket listener_;
  std::string token_;
  Interrupt closing_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::queue<Incoming> queue_;
  std::list<std::thread> threads_;
  std::atomic<int> pending_{0};
  std::thread acceptor_;
};

}  // namespace crema
