#include "node/places.h"

#include <algorithm>

#include "base/error.h"

namespace crema::node {

int64_t Places::add(const wire::NodeRequest::Place& from, int64_t count) {
  if (over_.count(from.call()) != 0)
    badData(
        "rows of partition {} came after the end of their train(): another attempt of this task has fed them, and this "
        "one is not wanted",
        from.partition());
  int64_t& have = came_[from.call()][from.partition()];
  if (from.at() < 0 || from.at() > have)
    badData("rows of partition {} came from place {} on, and only {} came before them; are all parts of one version?",
            from.partition(), from.at(), have);
  const int64_t before = std::min(have - from.at(), count);
  have += count - before;
  return before;
}

int64_t Places::end(int64_t call) {
  int64_t rows = 0;
  for (const auto& [partition, have] : came_[call]) rows += have;
  for (const auto& [known, partitions] : came_) over_.insert(known);
  came_.clear();
  return rows;
}

}  // namespace crema::node
