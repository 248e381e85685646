// The loop around the steps of the update rules (updates/list.h), which the compiler turns into vectors: whole ones
// and, as every operation rounds once, any remainder with the same bits.
namespace crema::kernels::KNS {

template <bool L1, class Rule, size_t... K>
void updatePiece(const Rule rule, const Rate rate, float decay, float scale, int64_t count, const float* diff,
                 float* histories, int64_t stride, float* w, std::index_sequence<K...>) {
  float* const history[] = {histories + static_cast<int64_t>(K) * stride...};
#pragma GCC ivdep  // no array overlaps another
  for (int64_t i = 0; i < count; ++i) {
    const float value = w[i];
    const float penalty = decay * (L1 ? static_cast<float>((value > 0) - (value < 0)) : value);
    float kept[] = {history[K][i]...};
    w[i] = value - rule.step(rate, {.diff = diff[i], .scale = scale, .penalty = penalty}, kept[K]...);
    ((history[K][i] = kept[K]), ...);
  }
}

inline void update(Context& context, int64_t count, const Update& u, const float* diff, float* histories,
                   int64_t stride, float* w) {
  const auto decay = static_cast<float>(u.decay), scale = static_cast<float>(u.scale);
  const auto by = [&]<class Rule>(const Rule& rule) {
    constexpr std::make_index_sequence<Rule::kHistories> kEach;
    eachPiece(context, count, [&](int64_t from, int64_t to) {
      const auto run = [&]<bool L1>() {
        updatePiece<L1>(rule, u.rate, decay, scale, to - from, diff + from, histories + from, stride, w + from, kEach);
      };
      u.l1 ? run.template operator()<true>() : run.template operator()<false>();
    });
  };
  std::visit(by, u.rule);
}

}  // namespace crema::kernels::KNS
