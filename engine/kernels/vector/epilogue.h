// The steps of epilogue.h on vectors of numbers of one channel that lie side by side.
namespace crema::kernels::KNS {

// y [M][N]: the numbers of M rows, of channels `channel` and after it, in registers; row m of what is added begins at
// others + m * othersRow. What kind of step it is, is asked once for all of them.
template <int M, int N>
INL void stepRows(const Step<float>& step, int channel, const float* others, ptrdiff_t othersRow, V (*y)[N]) {
  static constexpr float kZeros[kRows] = {};
  static_assert(M <= kRows);
  const auto from = [&](const float* numbers) { return numbers ? numbers + channel : kZeros; };
  if (step.kind == Step<float>::kAffine) {
    const float *shift = from(step.shift), *factor = from(step.factor), *offset = from(step.offset);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      const V minus = set1(shift[m]), times = set1(factor[m]), plus = set1(offset[m]);
#pragma GCC unroll 16
      for (int v = 0; v < N; ++v) y[m][v] = fma(sub(y[m][v], minus), times, plus);
    }
  } else if (step.kind == Step<float>::kRelu) {
    const V slope = set1(step.slope);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 16
      for (int v = 0; v < N; ++v) y[m][v] = select(greater(y[m][v], zero()), y[m][v], mul(y[m][v], slope));
  } else {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 16
      for (int v = 0; v < N; ++v) y[m][v] = add(y[m][v], load(others + m * othersRow + v * VL));
  }
}

// y [N]: the numbers of one row.
template <int N = kWidth>
INL void stepRow(const Step<float>& step, int channel, const float* other, V* y) {
  stepRows<1, N>(step, channel, other, 0, reinterpret_cast<V(*)[N]>(y));
}

// Steps that a tile does on its rows before it stores them.
struct Finish {
  const Step<float>*first, *last;
  int channel;            // of the tile's first row
  ptrdiff_t at, rowStep;  // where it begins in a blob that a step adds, and how far apart its rows are there
  bool streams;           // store() or stream()
};

template <int M>
INL void finishTile(const Finish& finish, V (*y)[kWidth]) {
  for (const Step<float>* step = finish.first; step != finish.last; ++step)
    stepRows<M>(*step, finish.channel, step->kind == Step<float>::kAdd ? step->other + finish.at : nullptr,
                finish.rowStep, y);
}

}  // namespace crema::kernels::KNS
