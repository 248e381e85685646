// An end of waits that another thread brings.
#pragma once
#include <atomic>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/mutex.h"

namespace crema {

// Once raised, ends every wait that watches it, now and later, with one reason. Thread-safe.
class Interrupt {
 public:
  Interrupt();
  explicit Interrupt(Interrupt& parent);  // raised with its parent too, which outlives it
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  void raise(Error why);  // later reasons are ignored
  bool raised() const { return raised_.load(std::memory_order_acquire); }
  void check() const;                     // throws the reason when raised
  int descriptor() const { return fd_; }  // readable when raised

 private:
  int fd_;
  std::atomic<bool> raised_{false};
  mutable Mutex mutex_;
  std::unique_ptr<Error> why_ CREMA_GUARDED_BY(mutex_);
  Interrupt* parent_ = nullptr;
  std::set<Interrupt*> children_ CREMA_GUARDED_BY(mutex_);
};

// Sleeps; throws the interrupt's reason as soon as it is raised.
void pauseFor(double seconds, const Interrupt* interrupt);

}  // namespace crema
