#include "collective/background_sum.h"

#include <optional>
#include <utility>

namespace crema::collective {

BackgroundSum::BackgroundSum(Exchange& exchange) : exchange_(exchange), thread_([this] { work(); }) {}

BackgroundSum::~BackgroundSum() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    if (!parts_.empty()) exchange_.abandon();
    changed_.notify_all();
  }
  thread_.join();
}

void BackgroundSum::queue(std::variant<Part, Shared> part) {
  const MutexLock lock(mutex_);
  if (failed_) return;  // finish() says why
  parts_.push_back(std::move(part));
  changed_.notify_all();
}

// Without a deadline here: each part ends, with its sum or with an error, by the exchange's own.
void BackgroundSum::finish() {
  MutexLock lock(mutex_);
  changed_.wait(lock.standard(), [&]() CREMA_REQUIRES(mutex_) { return parts_.empty(); });
  if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
}

void BackgroundSum::exchange(const std::variant<Part, Shared>& part) {
  if (const auto* sum = std::get_if<Part>(&part)) {
    exchange_.allReduce(sum->pieces, sum->total, sum->count, sum->tag);
  } else {
    const auto& shared = std::get<Shared>(part);
    exchange_.copy(
        shared.of, [](int) { return true; }, shared.tag);
  }
}

void BackgroundSum::work() {
  for (;;) {
    std::optional<std::variant<Part, Shared>> part;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock.standard(), [&]() CREMA_REQUIRES(mutex_) { return stopping_ || !parts_.empty(); });
      if (stopping_) return;
      part = parts_.front();
    }
    std::exception_ptr failed;
    try {
      exchange(*part);
    } catch (...) {
      failed = std::current_exception();
    }
    const MutexLock lock(mutex_);
    if (failed)
      failed_ = std::move(failed), parts_.clear();  // finish() alone holds it from now on
    else
      parts_.pop_front();
    changed_.notify_all();
  }
}

}  // namespace crema::collective
