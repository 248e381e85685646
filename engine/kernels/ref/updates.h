// The update rules in double, weight by weight.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/ref/inner_product.h"
#include "kernels/updates/list.h"

namespace crema::kernels::ref {

template <class T, class Rule, size_t... K>
void updateBy(const Rule& rule, int64_t count, const Update& u, const T* diff, T* histories, int64_t stride, T* w,
              std::index_sequence<K...>) {
  for (int64_t i = 0; i < count; ++i) {
    const double sign = (w[i] > 0) - (w[i] < 0);
    const Gradient<double> g{.diff = diff[i], .scale = u.scale, .penalty = u.decay * (u.l1 ? sign : w[i])};
    w[i] -= static_cast<T>(rule.reference(u.rate, g, histories[static_cast<int64_t>(K) * stride + i]...));
  }
}

template <class T>
void update(int64_t count, const Update& u, const T* diff, T* histories, int64_t stride, T* w) {
  std::visit(
      [&]<class Rule>(const Rule& rule) {
        updateBy(rule, count, u, diff, histories, stride, w, std::make_index_sequence<Rule::kHistories>{});
      },
      u.rule);
}

template <class T>
void ipUpdate(const IpShape& s, const IpFactors<T>& f, const Update& u, T* histories, int64_t stride, T* w) {
  const auto count = static_cast<size_t>(int64_t{s.out} * s.in);
  std::vector<std::vector<T>> slots;
  for (const auto [slot, rank] : f.sum) {
    const auto at = static_cast<size_t>(slot);
    slots.resize(std::max(slots.size(), at + 1));
    if (rank >= 0) {
      slots[at].resize(count);
      ipBackwardWeights(s, f.x + rank * f.apart, f.dy + rank * f.apart, slots[at].data(), false);
    } else {
      for (size_t i = 0; i < count; ++i) slots[at][i] += slots[at + 1][i];
    }
  }
  update(int64_t{s.out} * s.in, u, slots.at(0).data(), histories, stride, w);
}

}  // namespace crema::kernels::ref
