#include "collective/tree.h"

#include "base/error.h"

namespace crema::collective {

int treeMiddle(int lo, int hi) {
  int power = 1;
  while (2 * power < hi - lo) power *= 2;
  return lo + power;
}

RankRange ranksOfWorker(int worker, int workers, int ranks) {
  if (workers < 1 || workers > ranks)
    invalid("{} workers for {} ranks: there must be 1 to as many workers as ranks", workers, ranks);
  if (worker < 0 || worker >= workers)
    invalid("worker {} of {}: numbers go from 0 to {}", worker, workers, workers - 1);
  // the first rank with floor(r W / R) >= w is ceil(w R / W)
  const auto first = [&](int w) { return static_cast<int>((static_cast<int64_t>(w) * ranks + workers - 1) / workers); };
  return {first(worker), first(worker + 1)};
}

std::vector<int> rankList(RankRange r) {
  std::vector<int> list;
  for (int i = r.lo; i < r.hi; ++i) list.push_back(i);
  return list;
}

static void collect(RankRange node, RankRange mine, std::vector<RankRange>& out) {
  if (node.hi <= mine.lo || node.lo >= mine.hi) return;
  if (node.lo >= mine.lo && node.hi <= mine.hi) {
    out.push_back(node);
    return;
  }
  const int mid = treeMiddle(node.lo, node.hi);
  collect({node.lo, mid}, mine, out);
  collect({mid, node.hi}, mine, out);
}

std::vector<RankRange> wholeSubtrees(RankRange mine, int ranks) {
  std::vector<RankRange> out;
  collect({0, ranks}, mine, out);
  return out;
}

}  // namespace crema::collective
