// What is bound by memory: pooling, rectifying, sums and products of elements, normalising, softmax.
#pragma once
#include "bench.h"
#include "kernels/norm.h"

namespace crema::kernels::bench {

inline void averagePool(Bench& b, const char* name, const PoolShape& s) {
  const Floats x = numbers(int64_t{s.n} * s.c * s.h * s.w, 1), dy = numbers(int64_t{s.n} * s.c * s.oh * s.ow, 2);
  Floats y(dy.size()), dx(x.size());
  const Work work = bytesOf(x.size(), y.size());
  Context& c = b.context();
  b.time<float>(
      name, "avePoolForward", work, [&] { avePoolForward(c, s, x.data(), y.data()); }, y,
      [&](float* want) { ref::avePoolForward(s, x.data(), want); });
  b.time<float>(
      name, "avePoolBackward", work, [&] { avePoolBackward(c, s, dy.data(), dx.data()); }, dx,
      [&](float* want) { ref::avePoolBackward(s, dy.data(), want); });
}

inline void maxPool(Bench& b, const char* name, const PoolShape& s) {
  const Floats x = numbers(int64_t{s.n} * s.c * s.h * s.w, 1), dy = numbers(int64_t{s.n} * s.c * s.oh * s.ow, 2);
  Floats y(dy.size()), dx(x.size());
  std::vector<int32_t> mask(dy.size());
  const Work work = bytesOf(x.size(), y.size(), mask.size());
  Context& c = b.context();
  b.time<float>(
      name, "maxPoolForward", work, [&] { maxPoolForward(c, s, x.data(), y.data(), mask.data()); }, y,
      [&](float* want) {
        std::vector<int32_t> places(mask.size());
        ref::maxPoolForward(s, x.data(), want, places.data());
        if (places != mask) internal("{}: maxima are at other places", name);
      });
  b.time<float>(
      name, "maxPoolBackward", work, [&] { maxPoolBackward(c, s, dy.data(), mask.data(), dx.data()); }, dx,
      [&](float* want) { ref::maxPoolBackward(s, dy.data(), mask.data(), want); });
}

inline void relu(Bench& b, const char* name, int64_t count) {
  const Floats x = numbers(count, 1), dy = numbers(count, 2);
  Floats y(x.size());
  Context& c = b.context();
  b.time<float>(
      name, "reluForward", bytesOf(2 * count), [&] { reluForward(c, count, 0.f, x.data(), y.data()); }, y,
      [&](float* want) { ref::reluForward(count, 0.f, x.data(), want); });
  b.time<float>(
      name, "reluBackward", bytesOf(3 * count), [&] { reluBackward(c, count, 0.f, x.data(), dy.data(), y.data()); }, y,
      [&](float* want) { ref::reluBackward(count, 0.f, x.data(), dy.data(), want); });
}

inline void elements(Bench& b, const char* name, int64_t count) {
  const Floats x = numbers(count, 1), z = numbers(count, 2), dy = numbers(count, 3), dz = numbers(count, 4);
  Floats y(x.size()), dx0(x.size()), dx1(x.size());
  Context& c = b.context();
  const Work work = bytesOf(3 * count);
  b.time<float>(
      name, "multiply", work, [&] { multiply(c, count, x.data(), z.data(), y.data()); }, y,
      [&](float* want) { ref::multiply(count, x.data(), z.data(), want); });
  b.time<float>(
      name, "add", work, [&] { add(c, count, x.data(), z.data(), y.data()); }, y,
      [&](float* want) { ref::add(count, x.data(), z.data(), want); });
  b.time<float>(
      name, "addRelu", work, [&] { addRelu(c, count, 0.f, x.data(), z.data(), y.data()); }, y,
      [&](float* want) { ref::addRelu(count, 0.f, x.data(), z.data(), want); });
  b.time<float>(
      name, "addReluBackward", bytesOf(5 * count),
      [&] { addReluBackward(c, count, 0.f, y.data(), dy.data(), dz.data(), dx0.data(), dx1.data()); }, dx1,
      [&](float* want) { ref::addReluBackward(count, 0.f, y.data(), dy.data(), dz.data(), dx0.data(), want); });
}

// The witness sums in the order of the numbers.
inline void reductions(Bench& b, const char* name, int64_t count) {
  const Floats x = numbers(count, 1), y = numbers(count, 2);
  std::vector<double> sum(1);
  Context& c = b.context();
  const auto plain = [count](const Floats& l, const Floats& r, double* want) {
    *want = 0;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) *want += static_cast<double>(l[i]) * r[i];
  };
  b.time<double>(
      name, "sumOfSquares", bytesOf(count), [&] { sum[0] = sumOfSquares(c, count, x.data()); }, sum,
      [&](double* want) { plain(x, x, want); });
  b.time<double>(
      name, "dot", bytesOf(2 * count), [&] { sum[0] = dot(c, count, x.data(), y.data()); }, sum,
      [&](double* want) { plain(x, y, want); });
}

inline void softmaxes(Bench& b, const char* name, int outer, int axis, int inner) {
  const Floats x = numbers(int64_t{outer} * axis * inner, 1);
  Floats y(x.size());
  b.time<float>(
      name, "softmax", bytesOf(2 * x.size()), [&] { softmax(b.context(), outer, axis, inner, x.data(), y.data()); }, y,
      [&](float* want) { ref::softmax(outer, axis, inner, x.data(), want); });
}

inline void lrn(Bench& b, const char* name, const LrnShape& s) {
  const int64_t count = int64_t{s.n} * s.c * s.hw;
  const Floats x = numbers(count, 1), dy = numbers(count, 2);
  Floats y(x.size()), dx(x.size());
  Context& c = b.context();
  b.time<float>(
      name, "lrnForward", bytesOf(2 * count), [&] { lrnForward(c, s, x.data(), y.data()); }, y,
      [&](float* want) { ref::lrnForward(s, x.data(), want); });
  b.time<float>(
      name, "lrnBackward", bytesOf(3 * count), [&] { lrnBackward(c, s, x.data(), dy.data(), dx.data()); }, dx,
      [&](float* want) { ref::lrnBackward(s, x.data(), dy.data(), want); });
}

inline void lrnWithin(Bench& b, const char* name, const LrnWithinShape& s) {
  const int64_t count = int64_t{s.n} * s.c * s.h * s.w;
  const Floats x = numbers(count, 1), dy = numbers(count, 2);
  Floats y(x.size()), dx(x.size()), scale(x.size());
  Context& c = b.context();
  b.time<float>(
      name, "lrnWithinForward", bytesOf(3 * count), [&] { lrnWithinForward(c, s, x.data(), scale.data(), y.data()); },
      y, [&](float* want) { ref::lrnWithinForward(s, x.data(), Floats(x.size()).data(), want); });
  b.time<float>(
      name, "lrnWithinBackward", bytesOf(4 * count),
      [&] { lrnWithinBackward(c, s, x.data(), scale.data(), dy.data(), dx.data()); }, dx,
      [&](float* want) { ref::lrnWithinBackward(s, x.data(), scale.data(), dy.data(), want); });
}

// What batch normalisation is made of where a blob's numbers stay the same (as in a test).
inline void channels(Bench& b, const char* name, const ChannelShape& s) {
  const int64_t count = int64_t{s.outer} * s.channels * s.inner;
  const Floats x = numbers(count, 1), z = numbers(count, 2);
  std::vector<double> sums(static_cast<size_t>(s.channels)), shift(sums.size(), 0.25), factor(sums.size(), 0.5);
  Floats y(x.size());
  Context& c = b.context();
  b.time<double>(
      name, "channelSums", bytesOf(count), [&] { channelSums(c, s, x.data(), sums.data()); }, sums,
      [&](double* want) { ref::channelSums(s, x.data(), want); });
  b.time<double>(
      name, "channelDots", bytesOf(2 * count),
      [&] { channelDots(c, s, x.data(), shift.data(), z.data(), shift.data(), sums.data()); }, sums,
      [&](double* want) { ref::channelDots(s, x.data(), shift.data(), z.data(), shift.data(), want); });
  b.time<float>(
      name, "channelAffine", bytesOf(2 * count),
      [&] { channelAffine(c, s, x.data(), shift.data(), factor.data(), shift.data(), y.data()); }, y,
      [&](float* want) { ref::channelAffine(s, x.data(), shift.data(), factor.data(), shift.data(), want); });
  const double *at = shift.data(), *by = factor.data();
  b.time<float>(
      name, "channelMix", bytesOf(3 * count), [&] { channelMix(c, s, x.data(), at, z.data(), at, by, by, y.data()); },
      y, [&](float* want) { ref::channelMix(s, x.data(), at, z.data(), at, by, by, want); });
}

// Normalised, scaled and rectified.
inline void norm(Bench& b, const char* name, const ChannelShape& s) {
  const int64_t count = int64_t{s.outer} * s.channels * s.inner;
  const Floats x = numbers(count, 1), dy = numbers(count, 2), scale = numbers(s.channels, 3);
  const Floats offset = numbers(s.channels, 4);
  const NormSteps<float> steps{.scaled = true, .rectified = true, .scale = scale.data(), .offset = offset.data()};
  std::vector<double> each(static_cast<size_t>(s.channels) * 5);
  const auto part = [&](int i) { return each.data() + int64_t{i} * s.channels; };
  const NormNumbers moments{part(0), part(1), part(2)};
  Floats y(x.size()), dx(x.size());
  Context& c = b.context();
  b.time<float>(
      name, "normForward", bytesOf(2 * count), [&] { normForward(c, s, 1e-5, x.data(), steps, y.data(), moments); }, y,
      [&](float* want) { ref::normForward(s, 1e-5, x.data(), steps, want, moments); });
  b.time<float>(
      name, "normBackward", bytesOf(3 * count),
      [&] {
        normBackward(c, s, x.data(), moments, steps, dy.data(), dx.data(), NormSums{part(3), part(4)});
      },
      dx,
      [&](float* want) {
        ref::normBackward(s, x.data(), moments, steps, dy.data(), want, NormSums{part(3), part(4)});
      });
}

}  // namespace crema::kernels::bench
