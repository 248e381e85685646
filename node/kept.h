// Copies of the blocks that were fed, in a file without a name, for epochs after the first: they are fed again from
// here, in the same order, and their source is not read again.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "node/broker.h"
#include "node/descriptor.h"

namespace crema::node {

class Kept {
 public:
  explicit Kept(std::string folder) : folder_(std::move(folder)) {}
  // Thread-safe. kIo when there is no room for it: feed fewer epochs at once, or name another folder.
  void add(const std::string& queue, const Item& item);
  // Puts all of that queue again; ends early when the program wants no more, or when withdrawn() holds, which is asked
  // before each block and a few times a second. What is added meanwhile takes no part.
  void replay(const std::string& queue, Broker& broker, const std::function<bool()>& withdrawn);
  // What was kept of a queue belongs to one call of train(): the next begins anew.
  void forget(const std::string& queue);

 private:
  struct Block {
    std::string queue;
    int64_t at, rows, first, count;
    uint64_t bytes;
  };
  const std::string folder_;
  Mutex mutex_;
  Descriptor file_ CREMA_GUARDED_BY(mutex_);
  int64_t end_ CREMA_GUARDED_BY(mutex_) = 0;
  std::vector<Block> blocks_ CREMA_GUARDED_BY(mutex_);
};

}  // namespace crema::node
