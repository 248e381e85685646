#include "base/thread_pool.h"

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"

namespace crema {

// A run is published by raising `generation`. Lanes look at it for a few microseconds before they sleep: layers follow
// each other closely while a net computes, and waking a thread costs more than a small layer.
struct ThreadPool::State {
  static constexpr int kSpins = 4000;  // some 10 us of pause instructions

  std::vector<std::thread> lanes;
  std::atomic<uint64_t> generation{0};
  std::atomic<int> next{0}, working{0}, sleeping{0};
  std::atomic<bool> ending{false};
  int tasks = 0;
  const std::function<void(int, int)>* body = nullptr;
  std::mutex mutex;
  std::condition_variable wake, finished;
  std::exception_ptr failed;

  static void pause() { __builtin_ia32_pause(); }

  void work(int lane) {
    try {
      for (int t; (t = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) (*body)(t, lane);
    } catch (...) {
      next.store(tasks, std::memory_order_relaxed);  // the others stop after the task in hand
      std::lock_guard<std::mutex> lock(mutex);
      if (!failed) failed = std::current_exception();
    }
  }

  bool awaitRun(uint64_t seen) {
    for (int i = 0; i < kSpins; ++i) {
      if (generation.load(std::memory_order_acquire) != seen || ending.load(std::memory_order_relaxed)) return !ending;
      pause();
    }
    std::unique_lock<std::mutex> lock(mutex);
    ++sleeping;
    wake.wait(lock, [&] { return generation.load(std::memory_order_acquire) != seen || ending; });
    --sleeping;
    return !ending;
  }

  void lane(int number) {
    uint64_t seen = 0;
    while (awaitRun(seen)) {
      seen = generation.load(std::memory_order_acquire);
      work(number);
      if (working.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        std::lock_guard<std::mutex> lock(mutex);
        finished.notify_one();
      }
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  try {
    for (int i = 1; i < threads; ++i) state_->lanes.emplace_back([this, i] { state_->lane(i); });
  } catch (const std::system_error& e) {
    const size_t started = state_->lanes.size() + 1;
    end();
    ioError("cannot start thread {} of {}: {}; ask for fewer threads or raise the limit of processes", started + 1,
            threads, e.code().message());
  }
}

ThreadPool::~ThreadPool() { end(); }

void ThreadPool::end() {
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
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
  s.tasks = tasks;
  s.body = &body;
  s.failed = nullptr;
  s.next.store(0, std::memory_order_relaxed);
  s.working.store(static_cast<int>(s.lanes.size()), std::memory_order_relaxed);
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    s.generation.fetch_add(1, std::memory_order_release);
  }
  if (s.sleeping.load() > 0) s.wake.notify_all();
  s.work(0);
  for (int i = 0; i < State::kSpins && s.working.load(std::memory_order_acquire) > 0; ++i) State::pause();
  if (s.working.load(std::memory_order_acquire) > 0) {
    std::unique_lock<std::mutex> lock(s.mutex);
    s.finished.wait(lock, [&] { return s.working.load(std::memory_order_acquire) == 0; });
  }
  if (s.failed) std::rethrow_exception(s.failed);
}

int availableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace crema
