#include "train/packed_gradient.h"

#include <algorithm>

namespace crema::train {

PackedGradient::PackedGradient(net::Net& net, const std::vector<net::TrainingPlan::Deferrable>& left) : net_(&net) {
  auto without = left;
  std::sort(without.begin(), without.end(), [](const auto& a, const auto& b) { return a.from < b.from; });
  int64_t from = 0;
  const auto keep = [&](int64_t to) {
    ranges_.push_back({from, count_, to - from});
    count_ += to - from;
  };
  for (const auto& one : without) keep(one.from), from = one.to;
  keep(net.flatDiff().count());
  if (packs()) values_.resize(static_cast<size_t>(count_));
}

int64_t PackedGradient::at(int64_t flat) const {
  const auto behind =
      std::upper_bound(ranges_.begin(), ranges_.end(), flat, [](int64_t f, const Range& r) { return f < r.flat; });
  const Range& in = *std::prev(behind);
  return in.packed + flat - in.flat;
}

void PackedGradient::take(int64_t from, int64_t to) {
  if (!packs()) return;
  const float* flat = net_->flatDiff().diff<float>();
  for (const Range& r : ranges_) {
    const int64_t lo = std::max(from, r.packed), hi = std::min(to, r.packed + r.size);
    if (lo < hi) std::copy_n(flat + r.flat + (lo - r.packed), hi - lo, values_.data() + lo);
  }
}

const float* PackedGradient::put(const float* packed) {
  if (!packs()) return packed;
  float* flat = net_->flatDiff().mutableDiff<float>();
  for (const Range& r : ranges_) std::copy_n(packed + r.packed, r.size, flat + r.flat);
  return flat;
}

}  // namespace crema::train
