#include "cluster/doorman.h"

#include "base/log.h"

namespace crema {
namespace {
constexpr double kProofSeconds = 5, kForever = 1e8;
}

Doorman::Doorman(const std::string& host, int port, std::string token)
    : listener_(Socket::listenOn(host, port)), token_(std::move(token)), acceptor_([this] { acceptAll(); }) {}

Doorman::~Doorman() {
  closing_.raise(Error(ErrorKind::kStopped, "the coordinator has ended"));
  acceptor_.join();
  for (auto& v : visitors_) v->thread.join();
}

void Doorman::acceptAll() {
  while (!closing_.raised()) {
    try {
      Socket s = listener_.accept(Deadline::after(3600), &closing_);
      reap();
      if (pending_.load() >= kMostPending) evictOldest();
      auto visitor = std::make_unique<Visitor>(std::move(s));
      ++pending_;
      visitor->thread = std::thread([this, v = visitor.get()] {
        serve(*v);
        v->gone = true;
      });
      visitors_.push_back(std::move(visitor));
    } catch (const std::exception& e) {
      if (closing_.raised()) return;
      const auto* error = dynamic_cast<const Error*>(&e);
      if (error && error->kind() == ErrorKind::kTimeout) continue;
      // No descriptors, memory or threads left: strangers pay first, so wait until some have gone.
      LOG_WARNING("cannot let anybody in just now: {}", e.what());
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
}

// Whoever has said nothing for longest makes room: silent strangers cannot keep a worker out.
void Doorman::evictOldest() {
  for (auto& v : visitors_) {
    std::lock_guard<std::mutex> lock(v->mutex);
    if (v->proved || v->gone || v->evicted) continue;
    v->evicted = true;
    v->socket.shutdownBoth();
    return;
  }
}

// Gives back what visitors held who have gone, so that strangers cost nothing in the long run.
void Doorman::reap() {
  for (auto v = visitors_.begin(); v != visitors_.end();) {
    if ((*v)->gone) {
      (*v)->thread.join();
      v = visitors_.erase(v);
    } else {
      ++v;
    }
  }
}

void Doorman::serve(Visitor& visitor) {
  const std::string peer = visitor.socket.peer();
  const auto push = [this](Incoming in) {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push(std::move(in));
    arrived_.notify_one();
  };
  std::shared_ptr<Channel> channel;
  try {
    proveAsServer(visitor.socket, token_, "control", Deadline::after(kProofSeconds), &closing_);
    --pending_;
    std::lock_guard<std::mutex> lock(visitor.mutex);
    visitor.proved = true;
    channel = std::make_shared<Channel>(std::move(visitor.socket));
  } catch (const std::exception& e) {
    --pending_;
    if (!closing_.raised()) LOG_WARNING("refused a connection from {}: {}", peer, e.what());
    std::lock_guard<std::mutex> lock(visitor.mutex);
    visitor.evicted = true;
    visitor.socket.close();
    return;
  }
  try {
    for (;;) {
      Incoming in;
      in.from = channel;
      channel->receive(&in.message, Deadline::after(kForever), &closing_);
      push(std::move(in));
    }
  } catch (const std::exception& e) {
    if (!closing_.raised()) push({channel, {}, e.what()});
  }
}

std::optional<Doorman::Incoming> Doorman::next(Deadline deadline, const Interrupt* stop) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (queue_.empty()) {
    if (stop) stop->check();
    if (deadline.passed()) return std::nullopt;
    arrived_.wait_for(lock, std::chrono::duration<double>(std::min(0.2, std::max(0.001, deadline.left()))));
  }
  Incoming in = std::move(queue_.front());
  queue_.pop();
  return in;
}

}  // namespace crema
