// The gradient of a convolution's input as convolutions of the padded gradient of its output.
namespace crema::kernels::KNS {

// dx: for every stride phase (r, q) of the input one stride-1 convolution of the padded dy. Input row ih belongs to
// phase r = (ih + pad) % stride and meets kernel rows a = r + stride * j at output row (ih + pad) / stride - j;
// dilation only with stride 1.
struct BackPhase {
  int r, q, tapsH, tapsW, firstY, firstX, startH, startW, rows, columns, K;
  std::vector<int> off, range;
  size_t weights;
};

struct BackPlan {
  int stepH, stepW;  // distance of adjacent taps in dy: the dilation
  int frontH, frontW, rows, columns, lastY, lastX;
  size_t channel, weights = 0;
  std::vector<BackPhase> phases;
  bool plain, whole;  // whole: every input element belongs to a phase with taps
};

// length: the phases of both axes, one after the other.
inline BackPlan planBack(const ConvShape& s) {
  BackPlan p;
  const int oh = s.oh(), ocg = s.oc / s.groups, icg = s.ic / s.groups;
  p.stepH = s.dilH, p.stepW = s.dilW;
  p.frontH = ((s.kh + s.strideH - 1) / s.strideH - 1) * p.stepH,
  p.frontW = ((s.kw + s.strideW - 1) / s.strideW - 1) * p.stepW;
  p.lastY = (s.h - 1 + s.padH) / s.strideH, p.lastX = (s.w - 1 + s.padW) / s.strideW;
  p.rows = p.lastY + 1 + p.frontH, p.columns = p.lastX + 1 + p.frontW;
  p.plain = s.kh == 1 && s.kw == 1 && s.strideH == 1 && s.strideW == 1 && s.padH == 0 && s.padW == 0;
  p.channel = static_cast<size_t>(p.rows) * p.columns;
  p.whole = s.kh >= s.strideH && s.kw >= s.strideW;
  for (int r = 0; r < s.strideH; ++r)
    for (int q = 0; q < s.strideW; ++q) {
      BackPhase f{};
      f.r = r, f.q = q;
      f.tapsH = r < s.kh ? (s.kh - r + s.strideH - 1) / s.strideH : 0,
      f.tapsW = q < s.kw ? (s.kw - q + s.strideW - 1) / s.strideW : 0;
      f.startH = ((r - s.padH) % s.strideH + s.strideH) % s.strideH,
      f.startW = ((q - s.padW) % s.strideW + s.strideW) % s.strideW;
      if (f.tapsH * f.tapsW == 0) continue;
      const bool empty =
          f.startH >= s.h || f.startW >= s.w;  // its weights are packed, as those of any height and width
      f.firstY = (f.startH + s.padH) / s.strideH, f.firstX = (f.startW + s.padW) / s.strideW;
      f.rows = empty ? 0 : (s.h - 1 - f.startH) / s.strideH + 1;
      f.columns = empty ? 0 : (s.w - 1 - f.startW) / s.strideW + 1;
      f.K = ocg * f.tapsH * f.tapsW;
      f.weights = p.weights;
      p.weights += static_cast<size_t>(s.groups) * icg * f.K;
      for (int y = 0; y < f.rows; ++y) {  // taps j with 0 <= firstY + y - j * step < oh
        const int last = f.firstY + y, over = last - oh + 1;
        f.range.push_back(over <= 0 ? 0 : std::min(f.tapsH, (over + p.stepH - 1) / p.stepH));
        f.range.push_back(std::min(f.tapsH, last / p.stepH + 1));
      }
      for (int j = 0; j < f.tapsH; ++j)
        for (int o = 0; o < ocg; ++o)
          for (int l = 0; l < f.tapsW; ++l)
            f.off.push_back(static_cast<int>(o * p.channel +
                                             static_cast<size_t>(f.firstY - j * p.stepH + p.frontH) * p.columns +
                                             static_cast<size_t>(f.firstX - l * p.stepW + p.frontW)));
      p.phases.push_back(std::move(f));
    }
  return p;
}

inline void padGradient(const ConvShape& s, const BackPlan& p, const float* dy, int planes, float* to) {
  const int oh = s.oh(), ow = s.ow();
  for (int k = 0; k < planes; ++k, dy += static_cast<size_t>(oh) * ow, to += p.channel) {
    std::memset(to, 0, p.channel * 4);
    for (int y = 0; y < oh && y <= p.lastY; ++y)
      copyRow(dy + static_cast<size_t>(y) * ow, std::min(ow, p.lastX + 1),
              to + static_cast<size_t>(y + p.frontH) * p.columns + p.frontW);
  }
}

}  // namespace crema::kernels::KNS
