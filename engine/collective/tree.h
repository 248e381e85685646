// The fixed order in which gradients of ranks are added, whichever worker adds them.
//
// The tree over ranks [lo, hi) splits at mid = lo + the largest power of two below hi - lo; sum(lo, hi) = sum(lo, mid)
// + sum(mid, hi). Worker w of W holds ranks r with floor(r W / R) = w: consecutive ones, which it adds itself as far as
// they form whole subtrees (at most 2 log2 R pieces, one when W divides R and both are powers of two). Float addition
// is not associative: this order is what makes the bits independent of W.
#pragma once
#include <vector>

namespace crema::collective {

struct RankRange {
  int lo, hi;  // [lo, hi)
  bool operator==(const RankRange& o) const { return lo == o.lo && hi == o.hi; }
};

int treeMiddle(int lo, int hi);                               // hi - lo >= 2
RankRange ranksOfWorker(int worker, int workers, int ranks);  // 1 <= workers <= ranks
std::vector<int> rankList(RankRange r);
std::vector<RankRange> wholeSubtrees(RankRange mine, int ranks);  // the largest nodes inside `mine`, left to right

}  // namespace crema::collective
