// The steps of epilogue.h on kPanel numbers of one channel that lie side by side.
namespace crema::kernels::KNS {

INL void affineRow(const Step<float>& step, int channel, float* y) {
  const auto of = [&](const double* numbers) { return set8(numbers ? numbers[channel] : 0); };
  const D8 shift = of(step.shift), factor = of(step.factor), offset = of(step.offset);
  for (int i = 0; i < kPanel; i += 8) store8(y + i, (load8(y + i) - shift) * factor + offset);
}

INL void reluRow(float slope, float* y) {
  const V s = set1(slope);
  for (int v = 0; v < kWidth; ++v) {
    const V x = load(y + v * VL);
    store(y + v * VL, select(greater(x, zero()), x, mul(x, s)));
  }
}

INL void addRow(const float* other, float* y) {
  for (int v = 0; v < kWidth; ++v) store(y + v * VL, add(load(y + v * VL), load(other + v * VL)));
}

// `other` is the row of step.other, where the step is an addition.
INL void stepRow(const Step<float>& step, int channel, const float* other, float* y) {
  if (step.kind == Step<float>::kAffine)
    affineRow(step, channel, y);
  else if (step.kind == Step<float>::kRelu)
    reluRow(step.slope, y);
  else
    addRow(other, y);
}

}  // namespace crema::kernels::KNS
