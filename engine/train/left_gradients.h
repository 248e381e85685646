// Which gradients of inner products a run of several ranks leaves to the update (decision 0156): all workers then have the
// factors of all ranks, and each computes the whole sum.
#pragma once
#include <vector>

#include "net/training_plan.h"

namespace crema::train {

// In seconds of a step, for the worker with the fewest ranks of its own: the others' products at 100 GFLOP/s a thread, and their
// factors over a link of 10 Gbit/s, must take less than the sum of the gradient over that link. Alone, all products are its own,
// and the factors, and what is packed of them, must be fewer numbers than the gradient. The bits are the same whatever is left;
// all workers must leave the same.
std::vector<net::TrainingPlan::Deferrable> worthLeaving(const std::vector<net::TrainingPlan::Deferrable>& all,
                                                        int ranks, int workers, int threads);

}  // namespace crema::train
