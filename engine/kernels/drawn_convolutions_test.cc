// Convolutions of drawn shapes against double loops: which kernel computes a shape depends on all of its sizes, and what
// nobody thought of is among these. CREMA_DRAWN_CONVOLUTIONS=N draws N of them (400).
#include <algorithm>
#include <cstdlib>
#include <random>

#include "support/conv_cases.h"

namespace crema::kernels {
namespace {

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  int upTo(int most, int least = 1) { return std::uniform_int_distribution<int>(least, most)(random_); }
  // Mostly the first.
  int of(int usual, int most) { return upTo(3) < 3 ? usual : upTo(most); }

  // Such that the reference loops take some milliseconds.
  ConvShape shape() {
    for (;;) {
      ConvShape s{};
      s.groups = of(1, 4);
      const int channels = upTo(5) == 1 ? 150 : 50;
      s.ic = s.groups * upTo(channels / s.groups), s.oc = s.groups * upTo(channels / s.groups);
      if (upTo(12) == 1) s.groups = s.oc = s.ic;
      s.kh = upTo(2) == 1 ? upTo(7) : 2 * upTo(3) - 1, s.kw = upTo(3) > 1 ? s.kh : upTo(7);
      s.strideH = of(1, 4), s.strideW = upTo(4) > 1 ? s.strideH : upTo(3);
      s.dilH = of(1, 3), s.dilW = upTo(4) > 1 ? s.dilH : upTo(2);
      s.padH = upTo(s.kh + 1, 0), s.padW = upTo(3) > 1 ? s.padH : upTo(s.kw + 1, 0);
      s.n = upTo(4) > 1 ? upTo(4) : upTo(19), s.h = upTo(30), s.w = upTo(8) > 1 ? upTo(30) : upTo(90);
      const bool fits = s.h + 2 * s.padH >= (s.kh - 1) * s.dilH + 1 && s.w + 2 * s.padW >= (s.kw - 1) * s.dilW + 1;
      if (fits && double{1} * s.n * s.oc * s.oh() * s.ow() * (s.ic / s.groups) * s.kh * s.kw < 3e6) return s;
    }
  }

 private:
  std::mt19937 random_;
};

std::string text(const ConvShape& s) {
  return fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}", s.n, s.ic, s.h, s.w, s.oc, s.kh,
                     s.kw, s.strideH, s.strideW, s.padH, s.padW, s.dilH, s.dilW, s.groups);
}

// together: how many numbers lie side by side whose roundings meet: minimal filtering has the taps of a filter in common
// products, so that one which reaches no input is a rounding and not zero.
template <class Kernel, class Reference>
void check(const char* what, Context& context, size_t count, const Kernel& kernel, const Reference& reference,
           size_t together = 1) {
  std::vector<double> want(count), scale(count);
  reference(false, want.data()), reference(true, scale.data());
  for (auto first = scale.begin(); first < scale.end(); first += static_cast<ptrdiff_t>(together))
    std::fill_n(first, together, *std::max_element(first, first + static_cast<ptrdiff_t>(together)));
  Guarded<float> out(count, 0, NAN);  // what is not written shows
  kernel(context, out.data());
  near(what, out.take(what), want, scale);
}

void checkShape(const ConvShape& s, Context& k) {
  const ConvOperands o(s);
  const auto value = [](const std::vector<float>& of, bool magnitude) {
    return magnitude ? magnitudes(wide(of)) : wide(of);
  };
  check(
      "forward", k, o.out, [&](Context& c, float* y) { convForward(c, s, o.xs.data(), o.ws.data(), o.bs.data(), y); },
      [&](bool m, double* y) {
        ref::convForward(s, value(o.x, m).data(), value(o.w, m).data(), value(o.b, m).data(), y);
      });
  check(
      "back to data", k, o.in, [&](Context& c, float* dx) { convBackwardData(c, s, o.dys.data(), o.ws.data(), dx); },
      [&](bool m, double* dx) { ref::convBackwardData(s, value(o.dy, m).data(), value(o.w, m).data(), dx); });
  check(
      "weights", k, o.weights,
      [&](Context& c, float* dw) { convBackwardWeights(c, s, o.xs.data(), o.dys.data(), dw, false); },
      [&](bool m, double* dw) { ref::convBackwardWeights(s, value(o.x, m).data(), value(o.dy, m).data(), dw, false); },
      static_cast<size_t>(s.kh) * s.kw);
}

TEST(DrawnConvolutions, AreThoseOfDoubleLoops) {
  const char* asked = std::getenv("CREMA_DRAWN_CONVOLUTIONS");
  const unsigned count = asked ? static_cast<unsigned>(std::atoi(asked)) : 400;
  for (unsigned seed = 0; seed < count && !HasFailure(); ++seed) {
    Draw draw(seed);
    const ConvShape s = draw.shape();
    const auto isas = isasHere();
    const Isa* isa = isas[static_cast<size_t>(draw.upTo(static_cast<int>(isas.size()))) - 1];
    const int threads = draw.upTo(4);
    SCOPED_TRACE(fmt::format("seed {}: {}, {}, {} threads", seed, text(s), isa->name, threads));
    Context context(*isa, threads);
    checkShape(s, context);
  }
}

}  // namespace
}  // namespace crema::kernels
