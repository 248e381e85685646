// A listening port that authenticates its clients: it accepts connections, demands the proof of the token
// (handshake.cc), and hands those that prove it to `welcome`. Each client has a thread of its own, so nobody waits
// behind anybody. A client that has not proved the token is cut off after kProofSeconds; of more than kMostPending such
// clients the oldest is evicted. The first refusal is logged at once, the number of all of them when the door closes.
#pragma once
#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/handshake.h"
#include "base/mutex.h"
#include "base/socket.h"

namespace crema {

class Door {
 public:
  static constexpr double kProofSeconds = 5;
  static constexpr int kMostPending = 64;
  // Runs in the client's own thread and may stay there for as long as it watches `closing`. What it throws ends the
  // connection and is not logged or counted, as the client is authenticated.
  using Welcome = std::function<void(Socket proved, const Interrupt& closing)>;

  // `whose` names the port in log lines, such as "worker 1's port". The socket is listening already.
  Door(Socket listener, Secret secret, std::string purpose, std::string whose, Welcome welcome);
  ~Door();  // ends every connection
  std::string address() const { return listener_.address(); }
  int refused() const { return refused_; }

 private:
  struct Client {
    explicit Client(Socket s) : socket(std::move(s)) {}
    Socket socket;  // moved to the welcome once proved
    Mutex mutex;    // guards socket, proved and evicted
    bool proved CREMA_GUARDED_BY(mutex) = false, evicted CREMA_GUARDED_BY(mutex) = false;
    std::atomic<bool> gone{false};
    std::thread thread;
  };
  void acceptAll();
  void admit(Socket s);
  void serve(Client& client);
  void refuse(Client& client, const std::string& why);
  void evictOldest();
  void reap();

  Socket listener_;
  const Secret secret_;
  const std::string purpose_, whose_;
  const Welcome welcome_;
  Interrupt closing_;
  std::list<std::unique_ptr<Client>> clients_;  // used by the acceptor's thread alone until that has ended
  std::atomic<int> pending_{0}, refused_{0};
  std::thread acceptor_;
};

// Connects to a door and proves the token. With many clients at once it may be evicted before it could prove anything:
// it then connects again, up to four times within 1.5 s, which is also how long a wrong token takes to fail.
Socket connectThroughDoor(const std::string& address, const Secret& secret, std::string_view purpose, Deadline deadline,
                          const Interrupt* interrupt, Deadline refusedUntil);

}  // namespace crema
