#include "base/door.h"

#include "base/log.h"

namespace crema {

Door::Door(Socket listener, Secret secret, std::string purpose, std::string whose, Welcome welcome)
    : listener_(std::move(listener)),
      secret_(std::move(secret)),
      purpose_(std::move(purpose)),
      whose_(std::move(whose)),
      welcome_(std::move(welcome)),
      acceptor_([this] { acceptAll(); }) {}

Door::~Door() {
  closing_.raise(Error(ErrorKind::kStopped, "the door is closed"));
  acceptor_.join();
  for (auto& c : clients_) c->thread.join();
  if (refused_ > 1) LOG_WARNING("{} clients of {} were refused in all", refused_.load(), whose_);
}

void Door::acceptAll() {
  bool logged = false;
  while (!closing_.raised()) {
    try {
      admit(listener_.accept(Deadline::after(3600), &closing_));
    } catch (const std::exception& e) {
      if (closing_.raised()) return;
      const auto* error = dynamic_cast<const Error*>(&e);
      if (error && error->kind() == ErrorKind::kTimeout) continue;
      // No descriptors, memory or threads are left: new clients wait until others have gone.
      if (!std::exchange(logged, true)) LOG_WARNING("cannot let anybody in at {} just now: {}", whose_, e.what());
      reap();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
}

void Door::admit(Socket s) {
  reap();
  if (pending_.load() >= kMostPending) evictOldest();
  auto client = std::make_unique<Client>(std::move(s));
  ++pending_;
  try {
    client->thread = std::thread([this, c = client.get()] {
      serve(*c);
      c->gone = true;
    });
  } catch (...) {
    --pending_;
    throw;
  }
  clients_.push_back(std::move(client));
}

// Disconnects the client that has been unauthenticated for longest, so that silent ones cannot keep a worker out.
void Door::evictOldest() {
  for (auto& c : clients_) {
    const MutexLock lock(c->mutex);
    if (c->proved || c->gone || c->evicted) continue;
    c->evicted = true;
    c->socket.shutdownBoth();
    return;
  }
}

// Joins the threads of clients that have gone and frees their sockets.
void Door::reap() {
  for (auto c = clients_.begin(); c != clients_.end();) {
    if ((*c)->gone) {
      (*c)->thread.join();
      c = clients_.erase(c);
    } else {
      ++c;
    }
  }
}

void Door::serve(Client& client) {
  Socket proved;
  // A client that learns that its proof was accepted is not evicted afterwards.
  const auto accept = [&] {
    const MutexLock lock(client.mutex);
    if (client.evicted) throw Error(ErrorKind::kPeer, "it was sent away to make room");
    client.proved = true;
  };
  try {
    proveAsServer(client.socket, secret_, purpose_, Deadline::after(kProofSeconds), &closing_, accept);
    const MutexLock lock(client.mutex);
    proved = std::move(client.socket);
  } catch (const std::exception& e) {
    refuse(client, e.what());
  }
  --pending_;
  if (!proved.open()) return;
  try {
    welcome_(std::move(proved), closing_);
  } catch (const std::exception&) {  // an error of an authenticated client is not the door's to report
  }
}

void Door::refuse(Client& client, const std::string& why) {
  const MutexLock lock(client.mutex);
  client.evicted = true;
  client.socket.close();
  if (closing_.raised() || refused_++ > 0) return;
  LOG_WARNING("a client of {} was refused: {}; further ones are counted, not told", whose_, why);
}

Socket connectThroughDoor(const std::string& address, const Secret& secret, std::string_view purpose, Deadline deadline,
                          const Interrupt* interrupt, Deadline refusedUntil) {
  for (double pause = 0.1;; pause *= 2) {
    Socket s = Socket::connectTo(address, deadline, interrupt, refusedUntil);
    try {
      proveAsClient(s, secret, purpose, deadline, interrupt);
      return s;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kPeer || pause > 0.8 || deadline.left() < pause) throw;
    }
    pauseFor(pause, interrupt);
  }
}

}  // namespace crema
