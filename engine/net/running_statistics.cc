#include "net/running_statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace crema::net {

void RunningStatistics::collect() {
  if (mode_ == layers::StatisticsMode::kFixed) return;
  mode_ = layers::StatisticsMode::kCollect, collected_ = true;
  if (empty()) return;
  withType(diff_.dtype(), [&]<class T>() { std::fill_n(diff_.mutableDiff<T>() + first_, size_, T{0}); });
}

void RunningStatistics::moveAtOnce() {
  if (mode_ != layers::StatisticsMode::kFixed) mode_ = layers::StatisticsMode::kMove;
}

template <class T>
void RunningStatistics::move(const T* sum, int ranks, int passes) {
  if (!collecting() || !std::exchange(collected_, false)) return;
  for (const auto& [offset, count, keptPerPass] : parts_) {
    const double kept = std::pow(keptPerPass, passes);
    T* values = data_.mutableData<T>() + offset;
    for (int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(kept * values[i] + double{sum[offset + i]} / ranks);
    std::fill_n(diff_.mutableDiff<T>() + offset, count, T{0});
  }
}
template void RunningStatistics::move<float>(const float*, int, int);
template void RunningStatistics::move<double>(const double*, int, int);

Blob RunningStatistics::save() const {
  Blob saved(Shape{static_cast<int>(size_)}, data_.dtype());
  if (!empty())
    withType(data_.dtype(), [&]<class T>() { std::copy_n(data_.data<T>() + first_, size_, saved.mutableData<T>()); });
  return saved;
}

void RunningStatistics::restore(const Blob& saved) {
  if (!empty())
    withType(data_.dtype(), [&]<class T>() { std::copy_n(saved.data<T>(), size_, data_.mutableData<T>() + first_); });
}

}  // namespace crema::net
