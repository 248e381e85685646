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
  for (auto& t : threads_) t.join();
}

void Doorman::acceptAll() {
  while (!closing_.raised()) {
    try {
      Socket s = listener_.accept(Deadline::after(3600), &closing_);
      if (pending_.load() >= kMostPending) continue;  // closed by going out of scope
      ++pending_;
      threads_.emplace_back([this, moved = std::make_shared<Socket>(std::move(s))] { serve(std::move(*moved)); });
    } catch (const Error& e) {
      if (!closing_.raised() && e.kind() == ErrorKind::kIo) LOG_WARNING("{}", e.what());
    }
  }
}

void Doorman::serve(Socket socket) {
  const std::string peer = socket.peer();
  const auto push = [this](Incoming in) {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push(std::move(in));
    arrived_.notify_one();
  };
  try {
    proveAsServer(socket, token_, "control", Deadline::after(kProofSeconds), &closing_);
    --pending_;
  } catch (const Error& e) {
    --pending_;
    if (!closing_.raised()) LOG_WARNING("refused a connection from {}: {}", peer, e.message());
    return;
  }
  auto channel = std::make_shared<Channel>(std::move(socket));
  try {
    for (;;) {
      Incoming in;
      in.from = channel;
      channel->receive(&in.message, Deadline::after(kForever), &closing_);
      push(std::move(in));
    }
  } catch (const Error& e) {
    if (!closing_.raised()) push({channel, {}, e.message()});
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
