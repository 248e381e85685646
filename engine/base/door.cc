#include "base/door.h"

#include "base/log.h"

namespace crema {

Door::Door(Socket listener, std::string token, std::string purpose, std::string whose, Welcome welcome)
    : listener_(std::move(listener)),
      token_(std::move(token)),
      purpose_(std::move(purpose)),
      whose_(std::move(whose)),
      welcome_(std::move(welcome)),
      acceptor_([this] { acceptAll(); }) {}

Door::~Door() {
  closing_.raise(Error(ErrorKind::kStopped, "the door is closed"));
  acceptor_.join();
  for (auto& v : visitors_) v->thread.join();
  if (refused_ > 1) LOG_WARNING("{} strangers knocked at {} in all; none was let in", refused_.load(), whose_);
}

void Door::acceptAll() {
  bool told = false;
  while (!closing_.raised()) {
    try {
      admit(listener_.accept(Deadline::after(3600), &closing_));
    } catch (const std::exception& e) {
      if (closing_.raised()) return;
      const auto* error = dynamic_cast<const Error*>(&e);
      if (error && error->kind() == ErrorKind::kTimeout) continue;
      // No descriptors, memory or threads left: strangers pay first, so wait until some have gone.
      if (!std::exchange(told, true)) LOG_WARNING("cannot let anybody in at {} just now: {}", whose_, e.what());
      reap();
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
}

void Door::admit(Socket s) {
  reap();
  if (pending_.load() >= kMostPending) evictOldest();
  auto visitor = std::make_unique<Visitor>(std::move(s));
  ++pending_;
  try {
    visitor->thread = std::thread([this, v = visitor.get()] {
      serve(*v);
      v->gone = true;
    });
  } catch (...) {
    --pending_;
    throw;
  }
  visitors_.push_back(std::move(visitor));
}

// Whoever has said nothing for longest makes room: silent strangers cannot keep a worker out.
void Door::evictOldest() {
  for (auto& v : visitors_) {
    std::lock_guard<std::mutex> lock(v->mutex);
    if (v->proved || v->gone || v->evicted) continue;
    v->evicted = true;
    v->socket.shutdownBoth();
    return;
  }
}

// Gives back what visitors held who have gone, so that strangers cost nothing in the long run.
void Door::reap() {
  for (auto v = visitors_.begin(); v != visitors_.end();) {
    if ((*v)->gone) {
      (*v)->thread.join();
      v = visitors_.erase(v);
    } else {
      ++v;
    }
  }
}

void Door::serve(Visitor& visitor) {
  Socket proved;
  // Whoever learns that it is in stays: from here on it is not sent away to make room.
  const auto accept = [&] {
    std::lock_guard<std::mutex> lock(visitor.mutex);
    if (visitor.evicted) throw Error(ErrorKind::kPeer, "it was sent away to make room");
    visitor.proved = true;
  };
  try {
    proveAsServer(visitor.socket, token_, purpose_, Deadline::after(kProofSeconds), &closing_, accept);
    std::lock_guard<std::mutex> lock(visitor.mutex);
    proved = std::move(visitor.socket);
  } catch (const std::exception& e) {
    refuse(visitor, e.what());
  }
  --pending_;
  if (!proved.open()) return;
  try {
    welcome_(std::move(proved), closing_);
  } catch (const std::exception&) {  // the welcome's own affair
  }
}

void Door::refuse(Visitor& visitor, const std::string& why) {
  std::lock_guard<std::mutex> lock(visitor.mutex);
  visitor.evicted = true;
  visitor.socket.close();
  if (closing_.raised() || refused_++ > 0) return;
  LOG_WARNING("a stranger knocked at {}: {}; further ones are counted, not told", whose_, why);
}

Socket connectThroughDoor(const std::string& address, std::string_view token, std::string_view purpose,
                          Deadline deadline, const Interrupt* interrupt, Deadline refusedUntil) {
  for (double pause = 0.1;; pause *= 2) {
    Socket s = Socket::connectTo(address, deadline, interrupt, refusedUntil);
    try {
      proveAsClient(s, token, purpose, deadline, interrupt);
      return s;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kPeer || pause > 0.8 || deadline.left() < pause) throw;
    }
    pauseFor(pause, interrupt);
  }
}

}  // namespace crema
