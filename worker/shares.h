// How many ranks each worker of a generation has: equal numbers, or fewer for slower workers. Pure functions of what was
// measured. The model does not depend on it (docs/decisions/0003-logical-ranks.md), so that a wrong measurement costs time only.
//
// With n_w ranks on worker w, s_w seconds for the pass of a rank there, and e seconds in which all exchange gradients:
//
//   seconds per step = max over w of n_w s_w + e        e grows with the vectors that are sent: see betterShares()
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "collective/tree.h"
#include "train/spent.h"

namespace crema::worker {

using train::Spent;
using Shares = std::vector<int>;  // ranks of each worker, at least one

Shares equalShares(int ranks, int workers);
// The ends of these shares, the first of which begins with rank 0.
std::vector<int> endsOf(const Shares& shares);

// Shares for which the largest of n_w s_w is least. No worker gets more than twice the ranks of an equal share, as its
// memory and its files grow with them; with this bound no other division is better (each rank in turn goes to the worker that
// then has least to do: moving one can only raise the maximum). Where a worker's sum would have more gradients in memory
// than that of a worker of all ranks, which the plan of a job counts, the bound is lowered until none has. Time: ranks^2.
Shares sharesFor(const std::vector<double>& secondsPerRank, int ranks);

struct Better {
  Shares shares;
  std::vector<double> secondsPerRank;
  double before, after;  // seconds per step
};

// Shares with which a step should take at least kGain less; nothing where there are none, or where less than kSteps steps have been
// measured.
//
// e is the least that any worker has waited for the sum, as the slowest one waits for nobody. A worker sends one vector for
// each subtree of its ranks, and gets one (collective/mesh.h): e is taken to grow with the vectors of all workers, although
// a part of it, such as latency, does not.
std::optional<Better> betterShares(const Shares& present, const std::vector<Spent>& spent);

// Less would not pay: the pauses, and measurements of a second run of one machine differ by up to a tenth.
constexpr double kGain = 0.15;
constexpr int64_t kSteps = 10;

}  // namespace crema::worker
