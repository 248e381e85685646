// Rows of a plane that are read where they lie, for the taps of a small window with a stride of one or two along them: what
// is outside of the plane is masked.
namespace crema::kernels::KNS {

constexpr int kMostColumns = 64;  // vectors

// Which of the columns from `first` on lie in a plane's row.
inline Mask inRow(int first, int w) { return lanes(std::clamp(-first, 0, VL), std::clamp(w - first, 0, VL)); }

// What is known, when code is written, of where a vector of outputs lies in its row. Masked loads take twice the time of
// others, and so do those that meet two lines: who knows more reads less. Of windows of three with a stride of one whose
// middles lie over their outputs: kBegins, the row's first vector; kEnds, its last one; kAll, both. kInside: all that the
// windows meet lies in the row. kAnywhere: nothing is known.
enum Place { kInside = 0, kBegins = 1, kEnds = 2, kAll = 3, kAnywhere };

// The columns that meet the TAPS taps of a row of the window, for a vector of outputs. BACK: output x meets column
// x + pad - b, else x STRIDE - pad + b.
template <int TAPS, int STRIDE, bool BACK>
struct ColumnsOfTaps {
  int x0;
  Mask out;
  Place place;
  int first[TAPS];
  Mask mask[TAPS][STRIDE];
  bool ends;  // whether the last lane's third tap, where the stride is two, is outside of the row

  // The columns of a row, zeros outside of it; or `outside`.
  template <int PLACE = kAnywhere>
  INL void read(const float* row, V* taps) const {
    readBy<PLACE>(
        row, zero(), [&](Mask which, const float* p) __attribute__((always_inline)) { return load(which, p); }, taps);
  }
  template <int PLACE = kAnywhere>
  INL void read(const float* row, V outside, V* taps) const {
    readBy<PLACE>(
        row,
        outside, [&](Mask which, const float* p) __attribute__((always_inline)) { return load(outside, which, p); },
        taps);
  }
  // read() for sums over outputs: zeros where there is no output, too, as 0 times what is read there may be no number.
  template <int PLACE>
  INL void readForSums(const float* row, V* taps) const {
    read<PLACE>(row, taps);
    if (fills(PLACE)) return;
#pragma GCC unroll 3
    for (int b = 0; b < TAPS; ++b) taps[b] = select(out, taps[b], zero());
  }
  // Outputs; y: of the first one.
  template <int PLACE>
  INL V readOutputs(const float* y) const {
    return fills(PLACE) ? load(y) : load(out, y);
  }
  template <int PLACE>
  INL void write(V v, float* y) const {
    if (fills(PLACE))
      store(y, v);
    else
      store(out, y, v);
  }

 private:
  static constexpr bool fills(int place) { return place == kInside || place == kBegins; }  // a vector with outputs
  template <int PLACE, class Load>
  INL void readBy(const float* row, V outside, const Load& masked, V* taps) const {
    const auto from = [&](int b, int i) __attribute__((always_inline)) {
      const float* p = row + first[b] + i * VL;
      return PLACE == kInside ? load(p) : masked(mask[b][i], p);
    };
    if constexpr (STRIDE == 2) {
      // Columns 2 x and 2 x + 1 come from the same two vectors; 2 x + 2 are the first of these, one further.
      const V low = from(0, 0), high = from(0, 1);
      taps[0] = evens(low, high);
      if (TAPS > 1) taps[1] = odds(low, high);
      if (TAPS > 2) taps[2] = after(taps[0], ends ? outside : set1(row[first[0] + 2 * VL]));
    } else if constexpr (PLACE == kAnywhere) {
#pragma GCC unroll 3
      for (int b = 0; b < TAPS; ++b) taps[b] = from(b, 0);
    } else {
      const V middle = PLACE & kEnds ? masked(out, row + x0) : load(row + x0);
      const V left = PLACE & kBegins ? before(outside, middle)
                     : PLACE & kEnds ? before(set1(row[x0 - 1]), middle)
                                     : load(row + x0 - 1);
      const V right = PLACE & kEnds ? after(middle, outside) : load(row + x0 + 1);
      taps[0] = BACK ? right : left, taps[1] = middle, taps[2] = BACK ? left : right;
    }
  }
};

// For rows of `columns` numbers and `ow` outputs.
template <int TAPS, int STRIDE, bool BACK>
struct AllColumns {
  using Columns = ColumnsOfTaps<TAPS, STRIDE, BACK>;
  Columns of[kMostColumns];
  int count = 0;
  AllColumns(int columns, int ow, int pad) {
    for (int x0 = 0; x0 < ow; x0 += VL) {
      Columns& c = of[count++];
      c.x0 = x0, c.out = lanes(0, std::min(VL, ow - x0));
      for (int b = 0; b < TAPS; ++b) {
        c.first[b] = BACK ? x0 + pad - b : x0 * STRIDE + b - pad;
        for (int i = 0; i < STRIDE; ++i) c.mask[b][i] = inRow(c.first[b] + i * VL, columns);
      }
      const int beyond = c.first[0] + STRIDE * VL;
      c.ends = beyond < 0 || beyond >= columns;
      c.place = kAnywhere;
      if (STRIDE == 1 && TAPS == 3 && columns == ow && pad == 1)
        c.place = static_cast<Place>((x0 == 0 ? kBegins : 0) | (ow - x0 <= VL ? kEnds : 0));
      if (STRIDE == 2 && ow - x0 >= VL && c.first[0] >= 0 && beyond + TAPS - 2 <= columns) c.place = kInside;
    }
  }
  const Columns* begin() const { return of; }
  const Columns* end() const { return of + count; }
};

// use() with the place of these columns as a constant.
template <int TAPS, int STRIDE, bool BACK, class Use>
INL void byPlace(const ColumnsOfTaps<TAPS, STRIDE, BACK>& c, const Use& use) {
  if constexpr (STRIDE == 1 && TAPS == 3) {
    if (c.place == kBegins) return use(std::integral_constant<int, kBegins>());
    if (c.place == kEnds) return use(std::integral_constant<int, kEnds>());
    if (c.place == kAll) return use(std::integral_constant<int, kAll>());
  }
  if (c.place == kInside) return use(std::integral_constant<int, kInside>());
  use(std::integral_constant<int, kAnywhere>());
}

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
