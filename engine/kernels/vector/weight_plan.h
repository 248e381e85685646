// Which taps of a convolution's weights a tile takes together (conv_weights.h).
namespace crema::kernels::KNS {

// Lines of J adjacent taps. Kernels wider than one tap: J taps of a kernel row in one stride phase, one float apart.
// 1x1 kernels: three channels, one plane apart, the remaining channels alone.
struct TapSet {
  int J;
  bool one;
  std::vector<int> line;    // offset of tap 0
  std::vector<int> weight;  // [line][J]: index in a filter, -1: padding of the line
  size_t base = 0;          // first row of this set in a panel's part
};

struct WeightPlan {
  std::vector<TapSet> sets;
  size_t rows = 0;  // over all sets
};

inline int tapGroups(int taps) { return (taps + kMostTaps - 1) / kMostTaps; }

inline bool tapsExact(const ConvShape& s) {
  const int taps = (s.kw + s.strideW - 1) / s.strideW;
  return s.dilW > 1 || taps % tapGroups(taps) == 0;
}

inline void addRowTaps(const ConvShape& s, const Planes& planes, WeightPlan& plan) {
  const int icg = s.ic / s.groups, taps = (s.kw + s.strideW - 1) / s.strideW, groups = tapGroups(taps),
            J = (taps + groups - 1) / groups;
  TapSet set{.J = J, .one = true};
  for (int i = 0; i < icg; ++i)
    for (int a = 0; a < s.kh; ++a)
      for (int q = 0; q < std::min(s.strideW, s.kw); ++q)
        for (int g = 0; g < groups; ++g) {
          const int first = q + g * J * s.strideW;
          if (first >= s.kw) continue;
          set.line.push_back(planes.off(i, a, first));
          for (int j = 0; j < J; ++j) {
            const int b = first + j * s.strideW;
            set.weight.push_back(b < s.kw ? (i * s.kh + a) * s.kw + b : -1);
          }
        }
  plan.sets.push_back(std::move(set));
}

inline void addSingleTaps(const ConvShape& s, const Planes& planes, WeightPlan& plan, int fromChannel) {
  TapSet set{.J = 1, .one = true};
  for (int i = fromChannel; i < s.ic / s.groups; ++i)
    for (int a = 0; a < s.kh; ++a)
      for (int b = 0; b < s.kw; ++b)
        set.line.push_back(planes.off(i, a, b)), set.weight.push_back((i * s.kh + a) * s.kw + b);
  if (!set.line.empty()) plan.sets.push_back(std::move(set));
}

inline WeightPlan planWeights(const ConvShape& s, const Planes& planes) {
  WeightPlan plan;
  if (s.kh == 1 && s.kw == 1) {
    TapSet triples{.J = 3, .one = false};
    const int whole = s.ic / s.groups / 3 * 3;
    for (int i = 0; i < whole; i += 3) {
      triples.line.push_back(planes.off(i, 0, 0));
      for (int j = 0; j < 3; ++j) triples.weight.push_back(i + j);
    }
    if (whole) plan.sets.push_back(std::move(triples));
    addSingleTaps(s, planes, plan, whole);
  } else if (s.dilW > 1 && s.kw > 1) {
    addSingleTaps(s, planes, plan, 0);
  } else {
    addRowTaps(s, planes, plan);
  }
  for (TapSet& set : plan.sets) set.base = plan.rows, plan.rows += set.line.size() * static_cast<size_t>(set.J);
  return plan;
}

}  // namespace crema::kernels::KNS
