#include "worker/shares.h"

#include <algorithm>
#include <numeric>

#include "collective/tree_sum.h"

namespace crema::worker {
namespace {

// How many subtrees the ranks of each worker form.
std::vector<size_t> subtreesOf(const Shares& shares, int ranks) {
  std::vector<size_t> counts;
  int from = 0;
  for (const int to : endsOf(shares)) {
    counts.push_back(collective::wholeSubtrees({from, to}, ranks).size());
    from = to;
  }
  return counts;
}

// The vectors that all workers send and get in one step.
double vectors(const Shares& shares, int ranks) {
  const auto sent = subtreesOf(shares, ranks);
  return static_cast<double>(std::accumulate(sent.begin(), sent.end(), shares.size()));
}

// Slots of a worker's sum but the deepest, which is the net's own gradient, are buffers; the plan of a job counts those of a
// worker of all ranks (host/plan.cc).
bool fitsInMemory(const Shares& shares, int ranks) {
  int most = 1, from = 0;
  for (int r = 1; r < ranks; r *= 2) ++most;
  for (const int to : endsOf(shares)) {
    const auto roots = collective::wholeSubtrees({from, to}, ranks);
    const auto plan = collective::planTree(roots, [](collective::RankRange r) { return r.hi - r.lo == 1; });
    if (plan.slots > std::max(most, 2)) return false;
    from = to;
  }
  return true;
}

// Every rank beyond the first goes to the worker that then has least to do, of several to the first.
Shares dealt(const std::vector<double>& secondsPerRank, int ranks, int most) {
  Shares shares(secondsPerRank.size(), 1);
  for (int left = ranks - static_cast<int>(shares.size()); left > 0; --left) {
    size_t best = shares.size();
    const auto then = [&](size_t w) { return (shares[w] + 1) * secondsPerRank[w]; };
    for (size_t w = 0; w < shares.size(); ++w)
      if (shares[w] < most && (best == shares.size() || then(w) < then(best))) best = w;
    ++shares[best];
  }
  return shares;
}

double longest(const Shares& shares, const std::vector<double>& secondsPerRank) {
  double most = 0;
  for (size_t w = 0; w < shares.size(); ++w) most = std::max(most, shares[w] * secondsPerRank[w]);
  return most;
}

}  // namespace

Shares equalShares(int ranks, int workers) {
  Shares shares;
  for (int w = 0; w < workers; ++w) {
    const collective::RankRange r = collective::ranksOfWorker(w, workers, ranks);
    shares.push_back(r.hi - r.lo);
  }
  return shares;
}

std::vector<int> endsOf(const Shares& shares) {
  std::vector<int> ends;
  for (const int n : shares) ends.push_back((ends.empty() ? 0 : ends.back()) + n);
  return ends;
}

Shares sharesFor(const std::vector<double>& secondsPerRank, int ranks) {
  const int workers = static_cast<int>(secondsPerRank.size()), equal = (ranks + workers - 1) / workers;
  for (int most = 2 * equal; most > equal; --most)
    if (const Shares shares = dealt(secondsPerRank, ranks, most); fitsInMemory(shares, ranks)) return shares;
  return equalShares(ranks, workers);
}

std::optional<Better> betterShares(const Shares& present, const std::vector<Spent>& spent) {
  const int ranks = endsOf(present).back();
  std::vector<double> seconds;
  std::optional<double> waited;
  for (const Spent& s : spent) {
    if (s.steps < kSteps || s.passes < kSteps || !(s.passSeconds > 0) || s.waitedSeconds < 0) return std::nullopt;
    seconds.push_back(s.passSeconds / static_cast<double>(s.passes));
    const double each = s.waitedSeconds / static_cast<double>(s.steps);
    waited = std::min(waited.value_or(each), each);
  }
  Better b{sharesFor(seconds, ranks), seconds, 0, 0};
  b.before = longest(present, seconds) + *waited;
  b.after = longest(b.shares, seconds) + *waited * vectors(b.shares, ranks) / vectors(present, ranks);
  if (b.after > (1 - kGain) * b.before) return std::nullopt;
  return b;
}

}  // namespace crema::worker
