// The update rules in double, weight by weight.
#pragma once
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
void ipUpdate(const IpShape& s, const T* x, const T* dy, const Update& u, T* histories, int64_t stride, T* w) {
  std::vector<T> dw(static_cast<size_t>(int64_t{s.out} * s.in));
  ipBackwardWeights(s, x, dy, dw.data(), false);
  update(int64_t{s.out} * s.in, u, dw.data(), histories, stride, w);
}

}  // namespace crema::kernels::ref
