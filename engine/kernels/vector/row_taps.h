// Rows of a plane that are read where they lie, for the taps of a small window with a stride of one or two along them: what
// is outside of the plane is masked.
namespace crema::kernels::KNS {

constexpr int kMostColumns = 64;  // vectors

// Which of the columns from `first` on lie in a plane's row.
inline Mask inRow(int first, int w) { return lanes(std::clamp(-first, 0, VL), std::clamp(w - first, 0, VL)); }

// The columns that meet the TAPS taps of a row of the window, for a vector of outputs.
template <int TAPS, int STRIDE>
struct ColumnsOfTaps {
  int x0;
  Mask out;
  bool whole;  // all of a vector are outputs: masked stores take their time
  int first[TAPS];
  Mask mask[TAPS][STRIDE];

  // The columns of a row, zeros outside of it; or `outside`.
  INL void read(const float* row, V* taps) const {
    readBy(
        [&](int b, int i) __attribute__((always_inline)) { return load(mask[b][i], row + first[b] + i * VL); }, taps);
  }
  INL void read(const float* row, V outside, V* taps) const {
    readBy(
        [&](int b, int i) __attribute__((always_inline)) { return load(outside, mask[b][i], row + first[b] + i * VL); },
        taps);
  }
  template <class Load>
  INL void readBy(const Load& from, V* taps) const {
    if constexpr (STRIDE == 1) {
#pragma GCC unroll 3
      for (int b = 0; b < TAPS; ++b) taps[b] = from(b, 0);
    } else {  // columns 2 x and 2 x + 1 from the same two vectors, 2 x + 2 from those two columns on
      const V low = from(0, 0), high = from(0, 1);
      taps[0] = evens(low, high);
      if (TAPS > 1) taps[1] = odds(low, high);
      if (TAPS > 2) taps[2] = evens(from(2, 0), from(2, 1));
    }
  }
};

// For rows of `columns` numbers and `ow` outputs; BACK: output x meets column x + pad - b, else x STRIDE - pad + b. Lanes
// beyond the outputs read nothing.
template <int TAPS, int STRIDE, bool BACK>
struct AllColumns {
  using Columns = ColumnsOfTaps<TAPS, STRIDE>;
  Columns of[kMostColumns];
  int count = 0;
  AllColumns(int columns, int ow, int pad) {
    for (int x0 = 0; x0 < ow; x0 += VL) {
      Columns& c = of[count++];
      c.x0 = x0, c.out = lanes(0, std::min(VL, ow - x0)), c.whole = ow - x0 >= VL;
      for (int b = 0; b < TAPS; ++b) {
        c.first[b] = BACK ? x0 + pad - b : x0 * STRIDE + b - pad;
        const int end = std::min(columns, c.first[b] + (ow - x0) * STRIDE);
        for (int i = 0; i < STRIDE; ++i) c.mask[b][i] = inRow(c.first[b] + i * VL, end);
      }
    }
  }
  const Columns* begin() const { return of; }
  const Columns* end() const { return of + count; }
};

// Asks for what is read and written in a while, a little with each vector of outputs: planes follow each other in memory.
struct AskAhead {
  static constexpr int kAhead = 1024;
  int in, out;  // numbers for each vector
  AskAhead(int inputs, int outputs, int vectors)
      : in((inputs + vectors - 1) / std::max(1, vectors)), out((outputs + vectors - 1) / std::max(1, vectors)) {}
  INL void operator()(const float* x, const float* y, int vector) const {
    for (int i = 0; i < in; i += kLine) __builtin_prefetch(x + kAhead + vector * in + i);
    for (int i = 0; i < out; i += kLine) __builtin_prefetch(y + kAhead + vector * out + i, 1);
  }
  INL void toRead(const float* x, const float* y, int vector) const {
    for (int i = 0; i < in; i += kLine) __builtin_prefetch(x + kAhead + vector * in + i);
    for (int i = 0; i < out; i += kLine) __builtin_prefetch(y + kAhead + vector * out + i);
  }
};

}  // namespace crema::kernels::KNS
