// The door of a listening port: accepts connections, demands the proof of the token (handshake.cc), hands those that
// prove it to `welcome`. Every visitor has a thread that only waits, so nobody waits behind anybody; a stranger is cut
// off after kProofSeconds, and at most kMostPending may knock at once: beyond that the one that has been silent for
// longest goes. Strangers are counted: the first one is logged at once, all of them in one line when the door closes.
#pragma once
#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/socket.h"

namespace crema {

class Door {
 public:
  static constexpr double kProofSeconds = 5;
  static constexpr int kMostPending = 64;
  // Runs in the visitor's own thread and may stay there for as long as it watches `closing`. What it throws ends the
  // visit and is not logged: it was no stranger.
  using Welcome = std::function<void(Socket proved, const Interrupt& closing)>;

  // `whose` names the port in log lines, such as "worker 1's port". The socket is listening already.
  Door(Socket listener, std::string token, std::string purpose, std::string whose, Welcome welcome);
  ~Door();  // ends every visit
  std::string address() const { return listener_.address(); }
  int refused() const { return refused_; }

 private:
  struct Visitor {
    explicit Visitor(Socket s) : socket(std::move(s)) {}
    Socket socket;     // moved to the welcome once proved
    std::mutex mutex;  // of the socket's owner and of the two flags
    bool proved = false, evicted = false;
    std::atomic<bool> gone{false};
    std::thread thread;
  };
  void acceptAll();
  void admit(Socket s);
  void serve(Visitor& visitor);
  void refuse(Visitor& visitor, const std::string& why);
  void evictOldest();
  void reap();

  Socket listener_;
  const std::string token_, purpose_, whose_;
  const Welcome welcome_;
  Interrupt closing_;
  std::list<std::unique_ptr<Visitor>> visitors_;  // the acceptor's own until it has ended
  std::atomic<int> pending_{0}, refused_{0};
  std::thread acceptor_;
};

// Connects to a door and proves the token. Where a crowd stands at the door, a visitor may be sent away before it could
// prove anything: it knocks again, up to four times within 1.5 s, which is also what a wrong token costs.
Socket connectThroughDoor(const std::string& address, std::string_view token, std::string_view purpose,
                          Deadline deadline, const Interrupt* interrupt, Deadline refusedUntil);

}  // namespace crema
