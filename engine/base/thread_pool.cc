#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "base/child.h"
#include "base/error.h"
#include "base/mutex.h"

namespace crema {

// A run is published as a ticket. Idle lanes poll it for some microseconds before they sleep: layers follow each other
// closely, and waking a thread costs more than a small layer. A run ends when its tasks are done, whether all lanes
// have noticed it or not. Decided against: waiting for every lane, which made ReLU ten times slower beside another busy
// process, as a lane without a core answers a time slice later.
struct ThreadPool::State {
  static constexpr int kSpins = 4000;  // some 10 us of pause instructions

  std::vector<std::thread> lanes;
  // High half: the number of the run. Low half: its tasks that nobody has taken. A lane takes a task by decrementing
  // it; `tasks` and `body` then stay that run's until the lane calls done(), as the run cannot end before.
  std::atomic<uint64_t> ticket{0};
  std::atomic<int> unfinished{0}, sleeping{0};
  std::atomic<bool> ending{false};
  int tasks = 0;
  const std::function<void(int, int)>* body = nullptr;
  Mutex mutex;
  std::condition_variable wake, finished;
  std::exception_ptr failed;

  static void pause() { __builtin_ia32_pause(); }
  static uint64_t runOf(uint64_t t) { return t >> 32; }
  static int leftOf(uint64_t t) { return static_cast<int>(t & 0xffffffffu); }

  // Takes one task, or all that are left; returns how many were left, this one included.
  int take(bool all) {
    uint64_t t = ticket.load(std::memory_order_acquire);
    while (leftOf(t) > 0) {
      const auto taken = static_cast<uint64_t>(all ? leftOf(t) : 1);
      if (ticket.compare_exchange_weak(t, t - taken, std::memory_order_acq_rel, std::memory_order_acquire))
        return leftOf(t);
    }
    return 0;
  }

  void done(int count) {
    if (unfinished.fetch_sub(count, std::memory_order_acq_rel) != count) return;
    const MutexLock lock(mutex);
    finished.notify_one();
  }

  void work(int lane) {
    while (const int left = take(false)) {
      try {
        (*body)(tasks - left, lane);
        done(1);
      } catch (...) {
        {
          const MutexLock lock(mutex);
          if (!failed) failed = std::current_exception();
        }
        done(1 + take(true));  // other lanes finish the task they are at and get no more
      }
    }
  }

  bool awaitRun(uint64_t seen) {
    const auto there = [&] { return runOf(ticket.load(std::memory_order_acquire)) != seen || ending; };
    for (int i = 0; i < kSpins; ++i) {
      if (there()) return !ending;
      pause();
    }
    MutexLock lock(mutex);
    ++sleeping;
    wake.wait(lock.standard(), there);
    --sleeping;
    return !ending;
  }

  void lane(int number) {
    uint64_t seen = 0;
    while (awaitRun(seen)) {
      seen = runOf(ticket.load(std::memory_order_acquire));
      work(number);
    }
  }

  void publish(int count, const std::function<void(int, int)>& what) {
    tasks = count, body = &what, failed = nullptr;
    unfinished.store(count, std::memory_order_relaxed);
    {
      const MutexLock lock(mutex);
      const uint64_t run = runOf(ticket.load(std::memory_order_relaxed)) + 1;
      ticket.store(run << 32 | static_cast<uint64_t>(count), std::memory_order_release);
    }
    for (int i = std::min(count - 1, sleeping.load()); i > 0; --i) wake.notify_one();
  }

  void awaitEnd() {
    const auto ended = [&] { return unfinished.load(std::memory_order_acquire) == 0; };
    for (int i = 0; i < kSpins; ++i) {
      if (ended()) return;
      pause();
    }
    MutexLock lock(mutex);
    finished.wait(lock.standard(), ended);
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  try {
    for (int i = 1; i < threads; ++i) state_->lanes.emplace_back([this, i] { state_->lane(i); });
  } catch (const std::system_error& e) {
    const size_t started = state_->lanes.size() + 1;
    end();
    ioError("cannot start thread {} of {}: {}; ask for fewer threads, or {}", started + 1, threads, e.code().message(),
            startRemedy(e.code().value()));
  }
}

ThreadPool::~ThreadPool() { end(); }

void ThreadPool::end() {
  {
    const MutexLock lock(state_->mutex);
    state_->ending = true;
  }
  state_->wake.notify_all();
  for (auto& t : state_->lanes) t.join();
}

int ThreadPool::size() const { return static_cast<int>(state_->lanes.size()) + 1; }

void ThreadPool::run(int tasks, const std::function<void(int, int)>& body) {
  State& s = *state_;
  if (tasks <= 1 || s.lanes.empty()) {
    for (int t = 0; t < tasks; ++t) body(t, 0);
    return;
  }
  s.publish(tasks, body);
  s.work(0);
  s.awaitEnd();
  if (s.failed) std::rethrow_exception(s.failed);
}

int availableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

void checkThreads(int threads, const char* name) {
  const int most = 4 * availableCores();
  if (threads < 0 || threads > most)
    invalid("{} must be 0 (all cores) to {} on this machine, not {}", name, most, threads);
}

}  // namespace crema
