#include "train/left_gradients.h"

namespace crema::train {

using Deferrable = net::TrainingPlan::Deferrable;

std::vector<Deferrable> worthLeaving(const std::vector<Deferrable>& all, int ranks, int workers, int threads) {
  constexpr double kFlops = 100e9, kBytes = 10e9 / 8;
  std::vector<Deferrable> left;
  for (const Deferrable& one : all) {
    const double weights = static_cast<double>(one.to - one.from), factors = static_cast<double>(one.factors());
    const int others = ranks - ranks / workers;
    const double products = 2 * others * one.shape.n * weights / (kFlops * threads);
    const double more = products + 4 * others * factors / kBytes;
    const double less = 4 * weights * 2 * (workers - 1) / workers / kBytes;
    if (workers == 1 ? 2 * ranks * factors < weights : more < less) left.push_back(one);
  }
  return left;
}

}  // namespace crema::train
