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

// Calls by(piece) where piece(count, diff, histories, w) is one of a few loops.
template <class By>
void withPiece(const Update& u, int64_t stride, const By& by) {
  const auto decay = static_cast<float>(u.decay), scale = static_cast<float>(u.scale);
  const auto of = [&]<class Rule>(const Rule& rule) {
    constexpr std::make_index_sequence<Rule::kHistories> kEach;
    const auto piece = [&]<bool L1>(int64_t count, const float* diff, float* histories, float* w) {
      updatePiece<L1>(rule, u.rate, decay, scale, count, diff, histories, stride, w, kEach);
    };
    if (u.l1)
      by([&](auto... a) { piece.template operator()<true>(a...); });
    else
      by([&](auto... a) { piece.template operator()<false>(a...); });
  };
  std::visit(of, u.rule);
}

inline void update(Context& context, int64_t count, const Update& u, const float* diff, float* histories,
                   int64_t stride, float* w) {
  withPiece(u, stride, [&](const auto& piece) {
    eachPiece(context, count,
              [&](int64_t from, int64_t to) { piece(to - from, diff + from, histories + from, w + from); });
  });
}

// Tiles are put side by side until a row is long enough: pieces of a panel's width, each of another row, are read at half of
// the memory's speed.
inline void ipUpdate(Context& context, const IpShape& s, const IpFactors<float>& f, const Update& u, float* histories,
                     int64_t stride, float* w) {
  constexpr int kRun = kRunPanels * kPanel;
  const int ld = s.transposed ? s.out : s.in;
  withPiece(u, stride, [&](const auto& piece) {
    weightTiles(context, s, f, [&](int lane, const float* tile, int row, int rows, int column, int columns) {
      float* diff = context.scratch().lane[static_cast<size_t>(lane)].tile.get(size_t{kRows} * kRun);
      const int from = column / kRun * kRun, to = column + columns;
      addTile(tile, rows, columns, diff + (column - from), kRun, false);
      if (to != ld && to - from < kRun) return;
      for (int m = 0; m < rows; ++m) {
        const ptrdiff_t at = static_cast<ptrdiff_t>(row + m) * ld + from;
        piece(to - from, diff + static_cast<ptrdiff_t>(m) * kRun, histories + at, w + at);
      }
    });
  });
}

}  // namespace crema::kernels::KNS
