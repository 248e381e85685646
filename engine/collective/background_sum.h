// An all-reduce in parts, in a thread of its own, while the caller still computes the parts that come later. A part may be bytes
// of each worker instead, which all get.
//
// All workers must add the same parts in the same order; the bits of the sums do not depend on how a vector is cut.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/mutex.h"
#include "collective/mesh.h"

namespace crema::collective {

class BackgroundSum {
 public:
  explicit BackgroundSum(Exchange& exchange);
  ~BackgroundSum();  // abandons what is not finished; the exchange is then of no more use

  struct Part {
    std::vector<const float*> pieces;  // as Exchange::allReduce() takes them
    float* total;
    int64_t count;
    Tag tag;
  };
  struct Shared {
    std::vector<Bytes> of;  // as Exchange::copy() takes them; each worker gets all
    Tag tag;
  };
  // What is added does not change any more until finish(). After an error nothing is sent.
  void add(Part part) { queue(std::move(part)); }
  void share(Shared part) { queue(std::move(part)); }
  void finish();  // waits for all parts; throws what the exchange threw

 private:
  void queue(std::variant<Part, Shared> part);
  void work();
  void exchange(const std::variant<Part, Shared>& part);

  Exchange& exchange_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::variant<Part, Shared>> parts_ CREMA_GUARDED_BY(mutex_);  // the first one is being summed
  std::exception_ptr failed_ CREMA_GUARDED_BY(mutex_);
  bool stopping_ CREMA_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace crema::collective
