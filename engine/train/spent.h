// What a worker has spent on the steps of a run, so far or since some moment: whether it is slower than others.
#pragma once
#include <cstdint>

namespace crema::train {

struct Spent {
  int64_t passes = 0;  // of a rank in a step; tests and updates are not counted, which are no smaller with fewer ranks
  double passSeconds = 0;    // in these
  int64_t steps = 0;         // that are done
  double waitedSeconds = 0;  // in these, for the sum over workers
};

}  // namespace crema::train
