// Threads for loops over independent tasks. The lanes are created once; run() hands out task numbers and returns when
// all are done. Results must not depend on which lane runs which task: every caller writes disjoint outputs.
#pragma once
#include <functional>
#include <memory>

namespace crema {

class ThreadPool {
 public:
  explicit ThreadPool(int threads);  // >= 1; the calling thread is lane 0, threads - 1 more are started
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const;
  // Calls body(task, lane) for every task in [0, tasks), lane in [0, size()). One run at a time per pool, from one
  // thread; the first exception thrown by body is rethrown here when no task is in hand any more. tasks <= 1 or size 1:
  // all in the calling thread.
  void run(int tasks, const std::function<void(int task, int lane)>& body);

 private:
  void end();  // joins all lanes
  struct State;
  std::unique_ptr<State> state_;
};

int availableCores();  // the cores this process may use (affinity mask), at least 1
// kInvalid unless 0 <= threads <= 4 times that, beyond which they only get in each other's way. name: "-threads".
void checkThreads(int threads, const char* name);

}  // namespace crema
