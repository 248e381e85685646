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

// Each lane has a range of a run's tasks, the same part of them in every run, and takes from its front; a lane that has
// none left takes from the end of the others' ranges. So a lane mostly meets what it wrote itself, in its own cache: one
// that takes what comes next waits for the other cores' caches instead (decision 0148). Idle lanes poll for the next run
// for some microseconds before they sleep: layers follow each other closely, and waking a thread costs more than a small
// layer. A run ends when its tasks are done, whether all lanes have noticed it or not. Decided against: waiting for every
// lane, which made ReLU ten times slower beside another busy process, as a lane without a core answers a time slice later.
struct ThreadPool::State {
  static constexpr int kSpins = 4000;  // some 10 us of pause instructions
  static constexpr int kBits = 20;     // of a number of portions

  // What is left of a lane's portions, [first, last), and of which run: one word, as several lanes take from it. A lane
  // that has taken a portion may use `body` until it calls done(), as the run cannot end before.
  struct Range {
    uint64_t run, first, last;
    explicit Range(uint64_t word)
        : run(word >> 2 * kBits), first(word >> kBits & ((1u << kBits) - 1)), last(word & ((1u << kBits) - 1)) {}
    static uint64_t word(uint64_t run, uint64_t first, uint64_t last) {
      return run << 2 * kBits | first << kBits | last;
    }
  };
  struct alignas(64) Place {
    std::atomic<uint64_t> word{0};
  };
  static constexpr uint64_t kRuns = (uint64_t{1} << (64 - 2 * kBits)) - 1;  // their numbers go round

  explicit State(int threads) : places(static_cast<size_t>(threads)) {}

  std::vector<Place> places;
  std::vector<std::thread> lanes;
  std::atomic<uint64_t> run{0};
  std::atomic<int> unfinished{0}, sleeping{0};
  std::atomic<bool> ending{false};
  int tasks = 0, portion = 1;  // portion: so many tasks are taken at once, where there are very many
  const std::function<void(int, int)>* body = nullptr;
  Mutex mutex;
  std::condition_variable wake, finished;
  std::exception_ptr failed;

  static void pause() { __builtin_ia32_pause(); }

  // A portion of that run from a lane's range, from its front or its end; -1: there is none.
  int64_t take(size_t from, uint64_t of, bool front) {
    std::atomic<uint64_t>& word = places[from].word;
    uint64_t now = word.load(std::memory_order_acquire);
    for (Range left(now); left.run == of && left.first < left.last; left = Range(now)) {
      const uint64_t rest =
          front ? Range::word(of, left.first + 1, left.last) : Range::word(of, left.first, left.last - 1);
      if (word.compare_exchange_weak(now, rest, std::memory_order_acq_rel, std::memory_order_acquire))
        return static_cast<int64_t>(front ? left.first : left.last - 1);
    }
    return -1;
  }

  int64_t takeAny(size_t lane, uint64_t of) {
    int64_t taken = take(lane, of, true);
    for (size_t i = 1; taken < 0 && i < places.size(); ++i) taken = take((lane + i) % places.size(), of, false);
    return taken;
  }

  void done(int count) {
    if (unfinished.fetch_sub(count, std::memory_order_acq_rel) != count) return;
    const MutexLock lock(mutex);
    finished.notify_one();
  }

  void work(int lane, uint64_t of) {
    for (int64_t p = 0; (p = takeAny(static_cast<size_t>(lane), of)) >= 0;) {
      const int64_t first = p * portion, last = std::min<int64_t>(tasks, first + portion);
      try {
        for (int64_t t = first; t < last; ++t) (*body)(static_cast<int>(t), lane);
        done(1);
      } catch (...) {
        {
          const MutexLock lock(mutex);
          if (!failed) failed = std::current_exception();
        }
        int count = 1;  // other lanes finish the portion they are at and get no more
        while (takeAny(static_cast<size_t>(lane), of) >= 0) ++count;
        done(count);
      }
    }
  }

  bool awaitRun(uint64_t seen) {
    const auto there = [&] { return run.load(std::memory_order_acquire) != seen || ending; };
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
      seen = run.load(std::memory_order_acquire);
      work(number, seen);
    }
  }

  uint64_t publish(int count, const std::function<void(int, int)>& what) {
    const auto lanesHere = static_cast<int>(places.size());
    constexpr int kMost = (1 << kBits) - 1;
    portion = count / kMost + 1;
    const int portions = static_cast<int>((int64_t{count} + portion - 1) / portion), each = portions / lanesHere,
              more = portions % lanesHere;
    tasks = count, body = &what, failed = nullptr;
    unfinished.store(portions, std::memory_order_relaxed);
    const uint64_t next = run.load(std::memory_order_relaxed) % kRuns + 1;
    for (int i = 0, first = 0; i < lanesHere; ++i) {
      const int last = first + each + (i < more);
      places[static_cast<size_t>(i)].word.store(
          Range::word(next, static_cast<uint64_t>(first), static_cast<uint64_t>(last)), std::memory_order_release);
      first = last;
    }
    {
      const MutexLock lock(mutex);
      run.store(next, std::memory_order_release);
    }
    for (int i = std::min(portions - 1, sleeping.load()); i > 0; --i) wake.notify_one();
    return next;
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

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>(threads)) {
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
  if (s.unfinished.load(std::memory_order_relaxed)) internal("a loop over {} tasks begins within another", tasks);
  s.work(0, s.publish(tasks, body));
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
