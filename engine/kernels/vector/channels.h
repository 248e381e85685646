// Kernels of channels.h. Eight doubles at a time: one vector of AVX-512, two of AVX2, the same sums.
namespace crema::kernels::KNS {

// The last `count` numbers of a row, padded with zeros.
INL D8 loadSome(const float* p, int count) {
  alignas(32) float some[8] = {};
  for (int i = 0; i < count; ++i) some[i] = p[i];
  return load8(some);
}

// Eight numbers of a channel, the last of its row, or of eight channels where a row has one number: how a kernel reads
// and writes them, and its constants.
struct Eight {
  int channel;
  INL D8 only(D8 a) const { return a; }
  INL D8 read(const float* p) const { return load8(p); }
  INL D8 of(const double* numbers) const { return set8(numbers ? numbers[channel] : 0); }
};
struct SomeOfRow {
  int channel, count;
  INL D8 only(D8 a) const { return first(count, a); }  // 0 for numbers that are not there
  INL D8 read(const float* p) const { return loadSome(p, count); }
  INL D8 of(const double* numbers) const { return set8(numbers ? numbers[channel] : 0); }
};
struct EightChannels {
  int channel;
  INL D8 only(D8 a) const { return a; }
  INL D8 read(const float* p) const { return load8(p); }
  INL D8 of(const double* numbers) const { return numbers ? load8(numbers + channel) : set8(0); }
};
struct SomeChannels {
  int channel, count;
  INL D8 only(D8 a) const { return first(count, a); }
  INL D8 read(const float* p) const { return loadSome(p, count); }
  INL D8 of(const double* numbers) const {
    double some[8] = {};
    for (int i = 0; numbers && i < count; ++i) some[i] = numbers[channel + i];
    return load8(some);
  }
};

constexpr int64_t kChannelPiece = 1 << 15;  // numbers per task

// A sum's chains: number i of a row is added to chain i % kSumChains.
constexpr int kSumChains = 16;
struct SumChains {
  D8 eight[kSumChains / 8];
  INL SumChains() : eight{set8(0), set8(0)} {}
  INL double sum() const {
    double chain[kSumChains];
    for (int h = 0; h < kSumChains / 8; ++h) store8(chain + 8 * h, eight[h]);
    for (int half = kSumChains / 2; half; half /= 2)
      for (int l = 0; l < half; ++l) chain[l] += chain[l + half];
    return chain[0];
  }
};

// Rows of one number: eight channels side by side, a chain for each over the rows.
template <class Add>
void sumSingles(Context& context, const ChannelShape& s, double* sums, const Add& add) {
  const int block =
      static_cast<int>(std::clamp<int64_t>(kChannelPiece / std::max(1, s.outer), 8, std::max(8, s.channels))) & ~7;
  context.pool().run((s.channels + block - 1) / block, [&](int task, int) {
    const int end = std::min(s.channels, (task + 1) * block);
    for (int c = task * block; c < end; c += 8) {
      const int count = std::min(8, end - c);
      D8 sum = set8(0);
      for (int o = 0; o < s.outer; ++o) {
        const int64_t i = int64_t{o} * s.channels + c;
        sum = count == 8 ? add(EightChannels{c}, i, sum) : add(SomeChannels{c, count}, i, sum);
      }
      double some[8];
      store8(some, sum);
      for (int l = 0; l < count; ++l) sums[c + l] = some[l];
    }
  });
}

// sums[c] = sum over the rows of channel c; add(lanes, i, sum): with the terms of the numbers from i on added.
template <class Add>
void sumChannels(Context& context, const ChannelShape& s, double* sums, const Add& add) {
  if (s.inner == 1) return sumSingles(context, s, sums, add);
  const int64_t each = std::max<int64_t>(1, int64_t{s.outer} * s.inner);
  const int block = static_cast<int>(std::clamp<int64_t>(kChannelPiece / each, 1, std::max(1, s.channels)));
  context.pool().run((s.channels + block - 1) / block, [&](int task, int) {
    for (int c = task * block; c < std::min(s.channels, (task + 1) * block); ++c) {
      SumChains chains;
      for (int o = 0; o < s.outer; ++o) {
        const int64_t row = (int64_t{o} * s.channels + c) * s.inner;
        int i = 0;
        for (; i + kSumChains <= s.inner; i += kSumChains)
          for (int h = 0; h < kSumChains / 8; ++h)
            chains.eight[h] = add(Eight{c}, row + i + int64_t{8} * h, chains.eight[h]);
        for (int h = 0; i < s.inner; ++h, i += 8) {
          const int rest = s.inner - i;
          chains.eight[h] =
              rest < 8 ? add(SomeOfRow{c, rest}, row + i, chains.eight[h]) : add(Eight{c}, row + i, chains.eight[h]);
        }
      }
      sums[c] = chains.sum();
    }
  });
}

inline void channelSums(Context& context, const ChannelShape& s, const float* x, double* sums) {
  sumChannels(
      context, s,
      sums, [=](auto at, int64_t i, D8 sum) __attribute__((always_inline)) { return sum + at.read(x + i); });
}

inline void channelDots(Context& context, const ChannelShape& s, const float* a, const double* shiftA, const float* b,
                        const double* shiftB, double* sums) {
  sumChannels(
      context, s, sums, [=](auto at, int64_t i, D8 sum) __attribute__((always_inline)) {
        return fma8(at.only(at.read(a + i) - at.of(shiftA)), at.read(b + i) - at.of(shiftB), sum);
      });
}

// Some kinds of numbers, one of each kind for each channel, rounded to float. of(k, ..): those of kind k for a vector, which
// is on channel c or, where rows have one number, on channels from i on.
class ChannelNumbers {
 public:
  ChannelNumbers(const ChannelShape& s, std::initializer_list<const double*> kinds)
      : channels_(static_cast<size_t>(s.channels)), singles_(s.inner == 1), numbers_(kinds.size() * channels_, 0.f) {
    size_t k = 0;
    for (const double* kind : kinds) {
      for (size_t c = 0; kind && c < channels_; ++c) numbers_[k * channels_ + c] = static_cast<float>(kind[c]);
      ++k;
    }
  }
  INL V of(size_t k, int64_t c, Mask mask, int i) const {
    const float* kind = numbers_.data() + k * channels_;
    return singles_ ? load(mask, kind + i) : set1(kind[c]);
  }

 private:
  size_t channels_;
  bool singles_;
  std::vector<float> numbers_;
};

// body(channel, mask, i, where): the numbers of a row from i on, a vector at a time, which lie from `where` on.
template <class Body>
void eachVector(Context& context, const ChannelShape& s, const Body& body) {
  const bool singles = s.inner == 1;  // vectors over channels
  const int length = singles ? s.channels : s.inner;
  const int64_t rows = singles ? s.outer : int64_t{s.outer} * s.channels;
  const int64_t step = std::max<int64_t>(1, kChannelPiece / std::max(1, length));
  context.pool().run(static_cast<int>((rows + step - 1) / step), [&](int task, int) {
    for (int64_t r = task * step; r < std::min(rows, (task + 1) * step); ++r)
      for (int i = 0; i < length; i += VL)
        body(singles ? 0 : r % s.channels, lanes(0, std::min(VL, length - i)), i, r * length + i);
  });
}

inline void channelAffine(Context& context, const ChannelShape& s, const float* x, const double* shift,
                          const double* factor, const double* offset, float* y) {
  const ChannelNumbers n(s, {shift, factor, offset});
  eachVector(
      context, s, [&](int64_t c, Mask mask, int i, int64_t at) __attribute__((always_inline)) {
        store(mask, y + at,
              fma(sub(load(mask, x + at), n.of(0, c, mask, i)), n.of(1, c, mask, i), n.of(2, c, mask, i)));
      });
}

inline void channelMix(Context& context, const ChannelShape& s, const float* x, const double* shiftX, const float* y,
                       const double* shiftY, const double* q, const double* p, float* z) {
  const ChannelNumbers n(s, {shiftX, shiftY, q, p});
  eachVector(
      context, s, [&](int64_t c, Mask mask, int i, int64_t at) __attribute__((always_inline)) {
        const V a = sub(load(mask, x + at), n.of(0, c, mask, i)), b = sub(load(mask, y + at), n.of(1, c, mask, i));
        store(mask, z + at, mul(n.of(3, c, mask, i), fma(n.of(2, c, mask, i), b, a)));
      });
}

}  // namespace crema::kernels::KNS
