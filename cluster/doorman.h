// Lets authenticated workers in: accepts connections, demands the proof of the token, turns what workers say into one
// queue. Every connection has a thread that only waits; a stranger is cut off after a few seconds, and at most
// kMostPending may knock at once: beyond that the one that has been silent for longest goes.
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
  struct Visitor {
    explicit Visitor(Socket s) : socket(std::move(s)) {}
    Socket socket;     // the channel's once proved
    std::mutex mutex;  // of the socket's owner and of the two flags
    bool proved = false, evicted = false;
    std::atomic<bool> gone{false};
    std::thread thread;
  };
  void acceptAll();
  void serve(Visitor& visitor);
  void evictOldest();
  void reap();

  Socket listener_;
  std::string token_;
  Interrupt closing_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::queue<Incoming> queue_;
  std::list<std::unique_ptr<Visitor>> visitors_;  // the acceptor's own until it has ended
  std::atomic<int> pending_{0};
  std::thread acceptor_;
};

}  // namespace crema
