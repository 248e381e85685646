// Kernels of channels.h. Eight doubles at a time: one vector of AVX-512, two of AVX2, the same sums.
namespace crema::kernels::KNS {

// The last `count` numbers of a row, padded with zeros.
INL D8 loadSome(const float* p, int count) {
  alignas(32) float some[8] = {};
  for (int i = 0; i < count; ++i) some[i] = p[i];
  return load8(some);
}
INL void storeSome(float* p, int count, D8 a) {
  alignas(32) float some[8];
  store8(some, a);
  for (int i = 0; i < count; ++i) p[i] = some[i];
}

// Eight numbers of a channel, the last of its row, or of eight channels where a row has one number: how a kernel reads
// and writes them, and its constants.
struct Eight {
  int channel;
  INL D8 read(const float* p) const { return load8(p); }
  INL void write(float* p, D8 v) const { store8(p, v); }
  INL D8 of(const double* numbers) const { return set8(numbers ? numbers[channel] : 0); }
};
struct SomeOfRow {
  int channel, count;
  INL D8 read(const float* p) const { return loadSome(p, count); }
  INL void write(float* p, D8 v) const { storeSome(p, count, v); }
  INL D8 of(const double* numbers) const { return set8(numbers ? numbers[channel] : 0); }
};
struct EightChannels {
  int channel;
  INL D8 read(const float* p) const { return load8(p); }
  INL void write(float* p, D8 v) const { store8(p, v); }
  INL D8 of(const double* numbers) const { return numbers ? load8(numbers + channel) : set8(0); }
};
struct SomeChannels {
  int channel, count;
  INL D8 read(const float* p) const { return loadSome(p, count); }
  INL void write(float* p, D8 v) const { storeSome(p, count, v); }
  INL D8 of(const double* numbers) const {
    double some[8] = {};
    for (int i = 0; numbers && i < count; ++i) some[i] = numbers[channel + i];
    return load8(some);
  }
};

constexpr int64_t kChannelPiece = 1 << 15;  // numbers per task

// Rows of one number: eight channels side by side, a chain for each over the rows.
template <class Term>
void sumSingles(Context& context, const ChannelShape& s, double* sums, const Term& term) {
  const int block =
      static_cast<int>(std::clamp<int64_t>(kChannelPiece / std::max(1, s.outer), 8, std::max(8, s.channels))) & ~7;
  context.pool().run((s.channels + block - 1) / block, [&](int task, int) {
    const int end = std::min(s.channels, (task + 1) * block);
    for (int c = task * block; c < end; c += 8) {
      const int count = std::min(8, end - c);
      D8 sum = set8(0);
      for (int o = 0; o < s.outer; ++o) {
        const int64_t i = int64_t{o} * s.channels + c;
        sum = sum + (count == 8 ? term(EightChannels{c}, i) : term(SomeChannels{c, count}, i));
      }
      double some[8];
      store8(some, sum);
      for (int l = 0; l < count; ++l) sums[c + l] = some[l];
    }
  });
}

// sums[c] = sum over the rows of channel c; term(lanes, i): the terms of the numbers from i on.
template <class Term>
void sumChannels(Context& context, const ChannelShape& s, double* sums, const Term& term) {
  if (s.inner == 1) return sumSingles(context, s, sums, term);
  const int64_t each = std::max<int64_t>(1, int64_t{s.outer} * s.inner), whole = s.inner & ~7;
  const int block = static_cast<int>(std::clamp<int64_t>(kChannelPiece / each, 1, std::max(1, s.channels)));
  const auto rest = static_cast<int>(s.inner - whole);
  context.pool().run((s.channels + block - 1) / block, [&](int task, int) {
    for (int c = task * block; c < std::min(s.channels, (task + 1) * block); ++c) {
      double sum = 0;
      for (int o = 0; o < s.outer; ++o) {
        const int64_t row = (int64_t{o} * s.channels + c) * s.inner;
        D8 chain = set8(0);
        for (int64_t i = 0; i < whole; i += 8) chain = chain + term(Eight{c}, row + i);
        double chains[8], last[8];
        store8(chains, chain);
        if (rest) store8(last, term(SomeOfRow{c, rest}, row + whole));
        for (int l = 0; l < rest; ++l) chains[l] += last[l];
        for (int half = 4; half; half /= 2)
          for (int l = 0; l < half; ++l) chains[l] += chains[l + half];
        sum += chains[0];
      }
      sums[c] = sum;
    }
  });
}

// body(lanes, i) for each eight numbers of a row, or of eight channels where rows have one number.
template <class Body>
void eachEight(Context& context, const ChannelShape& s, const Body& body) {
  const bool singles = s.inner == 1;
  const int length = singles ? s.channels : s.inner, whole = length & ~7, rest = length - whole;
  const int64_t rows = singles ? s.outer : int64_t{s.outer} * s.channels;
  const int64_t step = std::max<int64_t>(1, kChannelPiece / std::max(1, length));
  context.pool().run(static_cast<int>((rows + step - 1) / step), [&](int task, int) {
    for (int64_t r = task * step; r < std::min(rows, (task + 1) * step); ++r) {
      const int64_t row = r * length;
      const int c = singles ? 0 : static_cast<int>(r % s.channels);
      if (singles) {
        for (int i = 0; i < whole; i += 8) body(EightChannels{i}, row + i);
        if (rest) body(SomeChannels{whole, rest}, row + whole);
      } else {
        for (int i = 0; i < whole; i += 8) body(Eight{c}, row + i);
        if (rest) body(SomeOfRow{c, rest}, row + whole);
      }
    }
  });
}

inline void channelSums(Context& context, const ChannelShape& s, const float* x, double* sums) {
  sumChannels(
      context, s, sums, [=](auto at, int64_t i) __attribute__((always_inline)) { return at.read(x + i); });
}

inline void channelDots(Context& context, const ChannelShape& s, const float* a, const double* shiftA, const float* b,
                        const double* shiftB, double* sums) {
  sumChannels(
      context, s, sums, [=](auto at, int64_t i) __attribute__((always_inline)) {
        return (at.read(a + i) - at.of(shiftA)) * (at.read(b + i) - at.of(shiftB));
      });
}

inline void channelAffine(Context& context, const ChannelShape& s, const float* x, const double* shift,
                          const double* factor, const double* offset, float* y) {
  const auto channels = static_cast<size_t>(s.channels);
  std::vector<float> numbers(3 * channels, 0.f);  // shifts with the other sign, factors, offsets
  for (size_t c = 0; c < channels; ++c) {
    numbers[c] = shift ? static_cast<float>(-shift[c]) : 0;
    numbers[channels + c] = static_cast<float>(factor[c]);
    numbers[2 * channels + c] = offset ? static_cast<float>(offset[c]) : 0;
  }
  const float *minus = numbers.data(), *times = minus + channels, *plus = times + channels;
  const bool singles = s.inner == 1;  // vectors over channels
  const int length = singles ? s.channels : s.inner;
  const int64_t rows = singles ? s.outer : int64_t{s.outer} * s.channels;
  const int64_t step = std::max<int64_t>(1, kChannelPiece / std::max(1, length));
  context.pool().run(static_cast<int>((rows + step - 1) / step), [&](int task, int) {
    for (int64_t r = task * step; r < std::min(rows, (task + 1) * step); ++r) {
      const int64_t row = r * length, c = singles ? 0 : r % s.channels;
      V m = set1(minus[c]), t = set1(times[c]), p = set1(plus[c]);
      for (int i = 0; i < length; i += VL) {
        const Mask mask = lanes(0, std::min(VL, length - i));
        if (singles) m = load(mask, minus + i), t = load(mask, times + i), p = load(mask, plus + i);
        store(mask, y + row + i, fma(add(load(mask, x + row + i), m), t, p));
      }
    }
  });
}

inline void channelMix(Context& context, const ChannelShape& s, const float* x, const float* y, const double* p,
                       const double* q, const double* shift, const double* r, float* z) {
  eachEight(
      context, s, [=](auto at, int64_t i) __attribute__((always_inline)) {
        at.write(z + i, at.of(p) * at.read(x + i) + at.of(q) * (at.read(y + i) - at.of(shift)) + at.of(r));
      });
}

}  // namespace crema::kernels::KNS
