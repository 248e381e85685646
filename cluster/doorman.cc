#include "cluster/doorman.h"

#include "base/waiting.h"

namespace crema::cluster {
namespace {
constexpr double kForever = 1e8;
}

Doorman::Doorman(const std::string& host, int port, Secret secret, int listener)
    : door_(listener >= 0 ? Socket::adoptListener(listener) : Socket::listenOn(host, port), std::move(secret),
            "control", "the coordinator's port",
            [this](Socket socket, const Interrupt& closing) { listenTo(std::move(socket), closing); }) {}

void Doorman::push(Incoming in, const Interrupt& closing) {
  MutexLock lock(mutex_);
  waitUntil(room_, lock, nullptr,
            [&]() CREMA_REQUIRES(mutex_) { return queue_.size() < kMostWaiting || closing.raised(); });
  queue_.push(std::move(in));
  arrived_.notify_one();
}

void Doorman::listenTo(Socket socket, const Interrupt& closing) {
  const auto channel = std::make_shared<Channel>(std::move(socket));
  try {
    for (;;) {
      Incoming in;
      in.from = channel;
      channel->receive(&in.message, Deadline::after(kForever), &closing);
      push(std::move(in), closing);
    }
  } catch (const std::exception& e) {
    if (!closing.raised()) push({channel, {}, e.what()}, closing);
  }
}

void Doorman::post(std::function<void()> call) {
  const MutexLock lock(mutex_);
  queue_.push({nullptr, {}, "", std::move(call)});
  arrived_.notify_one();
}

std::optional<Doorman::Incoming> Doorman::next(Deadline deadline, const Interrupt* stop) {
  MutexLock lock(mutex_);
  if (!waitUntil(arrived_, lock, deadline, stop, [this]() CREMA_REQUIRES(mutex_) { return !queue_.empty(); }))
    return std::nullopt;
  Incoming in = std::move(queue_.front());
  queue_.pop();
  room_.notify_one();
  return in;
}

}  // namespace crema::cluster
