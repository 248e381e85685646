// The steps of epilogue.h on vectors of numbers of one channel that lie side by side, kPanel where nothing else is said.
namespace crema::kernels::KNS {

// y [N]: the numbers of a row; `other` is the row of step.other, where the step is an addition.
template <int N = kWidth>
INL void stepRow(const Step<float>& step, int channel, const float* other, V* y) {
  const auto of = [&](const float* numbers) { return set1(numbers ? numbers[channel] : 0); };
  if (step.kind == Step<float>::kAffine) {
    const V minus = set1(step.shift ? -step.shift[channel] : 0), times = of(step.factor), plus = of(step.offset);
    for (int v = 0; v < N; ++v) y[v] = fma(add(y[v], minus), times, plus);
  } else if (step.kind == Step<float>::kRelu) {
    const V slope = set1(step.slope);
    for (int v = 0; v < N; ++v) y[v] = select(greater(y[v], zero()), y[v], mul(y[v], slope));
  } else {
    for (int v = 0; v < N; ++v) y[v] = add(y[v], load(other + v * VL));
  }
}

}  // namespace crema::kernels::KNS
