// Maxima of 2 x 2 windows side by side that fill a plane: vectors of outputs go on from row to row, put together from pieces
// of four outputs, for which eight numbers lie side by side in a row of the plane.
namespace crema::kernels::KNS {

constexpr int kOfPiece = 4;  // outputs

inline bool poolsSquares(const PoolShape& s) {
  const bool squares = s.kh == 2 && s.kw == 2 && s.strideH == 2 && s.strideW == 2 && s.padH == 0 && s.padW == 0;
  return squares && s.h == 2 * s.oh && s.w == 2 * s.ow && s.ow % kOfPiece == 0 && s.oh * s.ow % VL == 0;
}

class PoolSquares {
 public:
  explicit PoolSquares(const PoolShape& s) : s_(s), corner_(static_cast<size_t>(s.oh) * s.ow) {
    for (int r = 0; r < s.oh; ++r)
      for (int c = 0; c < s.ow; ++c) corner_[static_cast<size_t>(r) * s.ow + c] = 2 * r * s.w + 2 * c;
  }

  template <bool KEEPS>
  void maxima(const float* x, float* y, int32_t* mask) const {
    const V place[3] = {set1Bits(1), set1Bits(s_.w), set1Bits(s_.w + 1)};
    for (size_t o = 0; o < corner_.size(); o += VL) {
      V top[2], low[2];
      read(x, o, top), read(x + s_.w, o, low);
      Maxima<KEEPS> m(top[0], zero());
      m.meet(top[1], place[0]), m.meet(low[0], place[1]), m.meet(low[1], place[2]);
      store(y + o, m.best);
      if (KEEPS) store(reinterpret_cast<float*>(mask) + o, m.index(corner_.data() + o, s_.positive));
    }
  }

 private:
  // The even and the odd columns of a row of the windows of outputs [o, o + VL).
  INL void read(const float* x, size_t o, V* taps) const {
    static_assert(VL == 2 * kOfPiece || VL == 4 * kOfPiece);
    V half[2];
    for (int i = 0; i < 2; ++i) {
      const int32_t* corner = corner_.data() + o + i * VL / 2;
      if constexpr (VL == 2 * kOfPiece) half[i] = load(x + corner[0]);
      if constexpr (VL == 4 * kOfPiece) half[i] = loadHalves(x + corner[0], x + corner[kOfPiece]);
    }
    taps[0] = evens(half[0], half[1]), taps[1] = odds(half[0], half[1]);
  }

  const PoolShape& s_;
  std::vector<int32_t> corner_;  // of the window of each output: its first number in the plane
};

}  // namespace crema::kernels::KNS
