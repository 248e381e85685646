// Parameters without gradients that training passes update (Layer::addStatistic; BatchNorm's sums). A pass of one rank
// adds: diff <- f diff + addend, f being what a pass keeps. Over n passes of each of R ranks
//   p <- f^n p + (sum over ranks of diff) / R
// so one rank gives Caffe's numbers, and the result does not depend on who computes which rank.
//
// They lie behind the learnt parameters in the net's flat buffers (net.h), and so travel with the gradient.
#pragma once
#include <cstdint>
#include <vector>

#include "layers/layer.h"

namespace crema::net {

class RunningStatistics {
 public:
  // Nothing here changes nets whose passes never update them (`fixed`: tests of a solver, scoring).
  RunningStatistics(layers::StatisticsMode& mode, Blob& data, Blob& diff) : mode_(mode), data_(data), diff_(diff) {}
  void fix() { mode_ = layers::StatisticsMode::kFixed; }
  void place(int64_t first, int64_t size) { first_ = first, size_ = size; }
  void add(int64_t offset, int count, double kept) { parts_.push_back({offset, count, kept}); }

  bool empty() const { return parts_.empty(); }
  bool collecting() const { return mode_ == layers::StatisticsMode::kCollect; }
  // Clears the diffs; from now on passes leave their addends there until move().
  void collect();
  // From now on every pass updates them at once: for programs that run a net by themselves, without ranks.
  void moveAtOnce();
  // Updates them by the formula above after `passes` passes of each of `ranks` ranks; `sum` has the layout of the net's
  // flat diff. Does nothing when no pass has been collected since the last move().
  template <class T>
  void move(const T* sum, int ranks, int passes);

  Blob save() const;
  void restore(const Blob& saved);

 private:
  struct Part {
    int64_t offset;  // in the flat buffers
    int count;
    double kept;  // f of one pass; with several layers that share the parameter, the product
  };

  layers::StatisticsMode& mode_;
  Blob &data_, &diff_;
  int64_t first_ = 0, size_ = 0;  // their range in the flat buffers
  bool collected_ = false;        // since the last move()
  std::vector<Part> parts_;
};

}  // namespace crema::net
