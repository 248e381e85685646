#include "cluster/pieces.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <system_error>
#include <utility>

#include "base/child.h"
#include "base/mutex.h"
#include "base/waiting.h"
#include "cluster/patience.h"
#include "cluster/roster.h"

namespace crema::cluster {

struct Pieces::Desk {
  struct Item {
    std::shared_ptr<Channel> from;
    Piece piece;
    std::string sender;
  };

  Desk(std::function<bool(const Piece&, const std::string&)> t, std::function<void(std::function<void()>)> p)
      : take(std::move(t)), post(std::move(p)) {}
  void work();
  void write(const Item& item);

  const std::function<bool(const Piece&, const std::string&)> take;
  const std::function<void(std::function<void()>)> post;
  uint64_t written = 0;  // of the present file; the thread's
  Mutex mutex;
  std::condition_variable changed;
  std::deque<Item> waiting CREMA_GUARDED_BY(mutex);
  bool closed CREMA_GUARDED_BY(mutex) = false, ended CREMA_GUARDED_BY(mutex) = false;
  double since CREMA_GUARDED_BY(mutex) = -1;  // when the present piece was begun; -1: there is none
};

Pieces::Pieces(std::function<bool(const Piece&, const std::string& sender)> take,
               std::function<void(std::function<void()>)> post)
    : desk_(std::make_shared<Desk>(std::move(take), std::move(post))) {}

Pieces::~Pieces() {
  if (!thread_.joinable()) return;
  bool ended = false;
  {
    MutexLock lock(desk_->mutex);
    desk_->closed = true;
    desk_->changed.notify_all();
    ended = waitUntil(desk_->changed, lock, Deadline::after(patience::kAbort), nullptr,
                      [&]() CREMA_REQUIRES(desk_->mutex) { return desk_->ended; });
  }
  ended ? thread_.join() : thread_.detach();
}

void Pieces::add(std::shared_ptr<Channel> from, Piece piece, std::string sender) {
  {
    const MutexLock lock(desk_->mutex);
    desk_->waiting.push_back({std::move(from), std::move(piece), std::move(sender)});
    desk_->changed.notify_all();
  }
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([desk = desk_] { desk->work(); });
  } catch (const std::system_error& e) {
    ioError("cannot start a thread that writes a file: {}; {}", e.code().message(), startRemedy(e.code().value()));
  }
}

double Pieces::seconds(double now) const {
  const MutexLock lock(desk_->mutex);
  return desk_->since < 0 ? 0 : now - desk_->since;
}

void Pieces::Desk::work() {
  MutexLock lock(mutex);
  for (;;) {
    // Without a deadline: its owner's to close.
    changed.wait(lock.standard(), [this]() CREMA_REQUIRES(mutex) { return closed || !waiting.empty(); });
    if (closed) break;
    const Item item = std::move(waiting.front());
    waiting.pop_front();
    since = monotonicSeconds();
    lock.standard().unlock();
    std::exception_ptr failed;
    try {
      write(item);
    } catch (...) {
      failed = std::current_exception();
    }
    lock.standard().lock();
    since = -1;
    if (failed && !closed) post([failed] { std::rethrow_exception(failed); });
    if (failed) waiting.clear();
  }
  ended = true;
  changed.notify_all();
}

void Pieces::Desk::write(const Item& item) {
  if (item.piece.first()) written = 0;
  written += item.piece.data().size();
  control::ToMember message;
  message.mutable_kept()->set_whole(take(item.piece, item.sender));
  message.mutable_kept()->set_bytes(written);
  sendTo(*item.from, message);
}

}  // namespace crema::cluster
