// Kernels of channels.h, and the rows and sums of a channel for norm.h.
namespace crema::kernels::KNS {

constexpr int64_t kChannelPiece = 1 << 15;  // numbers per task

// `rows` of `inner` numbers, `stride` apart: those of a channel.
struct ChannelRows {
  int64_t first, stride;
  int rows, inner;
  ChannelRows(const ChannelShape& s, int c)
      : first(int64_t{c} * s.inner), stride(int64_t{s.channels} * s.inner), rows(s.outer), inner(s.inner) {}

  // Asks for what comes some thousand numbers after place i of a row, which lies at `at`: no processor foresees the next row,
  // and none looks far enough ahead for all that a number goes through here.
  INL void ahead(const float* at, int i) const {
    constexpr int kAhead = 1024;
    const int part = kAhead % inner;
    __builtin_prefetch(at + kAhead / inner * stride + (i + part < inner ? part : part - inner + stride));
  }

  // Asks for the same place of the next channel, whose row lies behind this one, for the second cache: while this channel is
  // there, the memory would wait.
  INL void next(const float* at) const { __builtin_prefetch(at + inner, 0, 2); }
};

// VL numbers of a row, or the last ones: how they are read, and terms without those of numbers that are not there.
struct WholeVector {
  INL V read(const float* p) const { return load(p); }
  INL V only(V terms) const { return terms; }
};
struct LastVector {
  Mask mask;
  explicit LastVector(int count) : mask(lanes(0, count)) {}
  INL V read(const float* p) const { return load(mask, p); }
  INL V only(V terms) const { return select(mask, terms, zero()); }
};

// The chains of a sum (channels.h).
constexpr int kSumChains = 16, kSumTerms = 16, kSumVectors = kSumChains / VL, kEights = VL / 8;

INL double treeOf(const D8* eights) {
  double chain[kSumChains];
  for (int h = 0; h < kSumChains / 8; ++h) store8(chain + 8 * h, eights[h]);
  for (int half = kSumChains / 2; half; half /= 2)
    for (int l = 0; l < half; ++l) chain[l] += chain[l + half];
  return chain[0];
}

INL void addWide(V v, D8* to) {
  D8 wide[kEights];
  widen(v, wide);
  for (int j = 0; j < kEights; ++j) to[j] = to[j] + wide[j];
}

// K sums over the numbers of a channel. add(at, i, chains) adds the terms of a vector of numbers from i on to
// chains[k * kSumVectors]. They are the blobs' that are `read`.
template <int K, class Add>
INL void totals(const ChannelRows& channel, std::initializer_list<const float*> read, double* sums, Add add) {
  D8 wide[K][kSumChains / 8];
  for (int k = 0; k < K; ++k)
    for (D8& eight : wide[k]) eight = set8(0);
  for (int o = 0; o < channel.rows; ++o) {
    const int64_t row = channel.first + o * channel.stride;
    for (int i = 0; i < channel.inner;) {
      const int to = std::min(channel.inner, i + kSumChains * kSumTerms);
      V chains[K * kSumVectors];
      for (V& c : chains) c = zero();
      for (; i + kSumChains <= to; i += kSumChains) {
        for (const float* blob : read) channel.ahead(blob + row + i, i);
        for (int v = 0; v < kSumVectors; ++v) add(WholeVector(), row + i + v * VL, chains + v);
      }
#pragma GCC unroll 4
      for (int v = 0; v < kSumVectors; ++v)
        if (i < to) add(LastVector(std::min(VL, to - i)), row + i, chains + v), i += VL;
      for (int k = 0; k < K; ++k)
        for (int v = 0; v < kSumVectors; ++v) addWide(chains[k * kSumVectors + v], &wide[k][v * kEights]);
    }
  }
  for (int k = 0; k < K; ++k) sums[k] = treeOf(wide[k]);
}

// sums[c] = sum over the rows of channel c, by totals().
template <class Add>
void sumChannels(Context& context, const ChannelShape& s, std::initializer_list<const float*> read, double* sums,
                 const Add& add) {
  const int64_t each = std::max<int64_t>(1, int64_t{s.outer} * s.inner);
  const int block = static_cast<int>(std::clamp<int64_t>(kChannelPiece / each, 1, std::max(1, s.channels)));
  context.pool().run((s.channels + block - 1) / block, [&](int task, int) {
    for (int c = task * block; c < std::min(s.channels, (task + 1) * block); ++c)
      totals<1>(
          ChannelRows(s, c), read,
          sums + c, [&](auto at, int64_t i, V* chain) __attribute__((always_inline)) { add(c, at, i, chain); });
  });
}

// Eight channels whose rows have one number, or the last ones.
struct SomeChannels {
  int channel, count;
  INL D8 read(const float* p) const {
    if (count == 8) return load8(p);
    alignas(32) float some[8] = {};
    for (int i = 0; i < count; ++i) some[i] = p[i];
    return load8(some);
  }
  INL D8 of(const double* numbers) const {
    double some[8] = {};
    for (int i = 0; numbers && i < count; ++i) some[i] = numbers[channel + i];
    return load8(some);
  }
};

// Rows of one number: eight channels side by side, a chain in double for each over the rows. add(channels, i, sum): with the
// terms of the numbers from i on added.
template <class Add>
void sumSingles(Context& context, const ChannelShape& s, double* sums, const Add& add) {
  const int block =
      static_cast<int>(std::clamp<int64_t>(kChannelPiece / std::max(1, s.outer), 8, std::max(8, s.channels))) & ~7;
  context.pool().run((s.channels + block - 1) / block, [&](int task, int) {
    const int end = std::min(s.channels, (task + 1) * block);
    for (int c = task * block; c < end; c += 8) {
      const SomeChannels some{c, std::min(8, end - c)};
      D8 sum = set8(0);
      for (int o = 0; o < s.outer; ++o) sum = add(some, int64_t{o} * s.channels + c, sum);
      double stored[8];
      store8(stored, sum);
      for (int l = 0; l < some.count; ++l) sums[c + l] = stored[l];
    }
  });
}

inline void channelSums(Context& context, const ChannelShape& s, const float* x, double* sums) {
  if (s.inner == 1)
    return sumSingles(
        context, s,
        sums, [=](auto at, int64_t i, D8 sum) __attribute__((always_inline)) { return sum + at.read(x + i); });
  sumChannels(
      context, s, {x}, sums, [=](int, auto at, int64_t i, V* chain) __attribute__((always_inline)) {
        *chain = add(*chain, at.read(x + i));
      });
}

inline void channelDots(Context& context, const ChannelShape& s, const float* a, const double* shiftA, const float* b,
                        const double* shiftB, double* sums) {
  if (s.inner == 1)
    return sumSingles(
        context, s, sums, [=](auto at, int64_t i, D8 sum) __attribute__((always_inline)) {
          return fma8(at.read(a + i) - at.of(shiftA), at.read(b + i) - at.of(shiftB), sum);
        });
  const auto shift = [](const double* of, int c) { return of ? static_cast<float>(of[c]) : 0.f; };
  sumChannels(
      context, s, {a, b}, sums, [=](int c, auto at, int64_t i, V* chain) __attribute__((always_inline)) {
        const V left = at.only(sub(at.read(a + i), set1(shift(shiftA, c))));
        *chain = fma(left, sub(at.read(b + i), set1(shift(shiftB, c))), *chain);
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
