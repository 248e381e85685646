// Weights that are packed once, for all passes while they are frozen.
#include <new>

#include "kernels/scratch.h"
#include "support/kernel_bits.h"

namespace crema::kernels {
namespace {

// Packed weights are kept while they are frozen, for each use of them apart, and read anew afterwards. `ic` channels in a
// group, twice as many filters.
void checkFrozen(int ic) {
  const ConvShape whole{2, ic, 9, 9, 2 * ic, 3, 3, 1, 1, 1, 1}, pixel{2, ic, 3, 3, 2 * ic, 3, 3};
  ConvShape grouped = whole;
  grouped.ic = 2 * ic, grouped.groups = 2;  // as many weights in another order
  ConvShape inner = whole;
  inner.padH = inner.padW = 0;  // as many in the same order, whose gradients go over tiles of the output
  const std::vector<ConvShape> back = ic < 16 ? std::vector{whole, grouped} : std::vector{whole, grouped, inner};
  const size_t out = static_cast<size_t>(4 * ic * 81);
  const auto x = numbers(out, 1);
  auto w = numbers(static_cast<size_t>(2 * ic * ic * 9), 2);
  const auto passes = [&](Context& k) {
    std::vector<std::vector<float>> all;
    for (const ConvShape& s : {whole, grouped, pixel}) {
      all.emplace_back(out);
      convForward<float>(k, s, x.data(), w.data(), nullptr, all.back().data());
    }
    for (const ConvShape& s : back) {
      all.emplace_back(out);
      convBackwardData<float>(k, s, x.data(), w.data(), all.back().data());
    }
    return all;
  };
  for (const Isa* isa : isasHere()) {
    Context plain(*isa, 2), kept(*isa, 2);
    const auto want = passes(plain);
    {
      const FrozenWeights frozen(kept);
      EXPECT_EQ(passes(kept), want);
      {
        const FrozenWeights again(kept);
        EXPECT_EQ(passes(kept), want);
      }
      w[7] += 1;  // against the contract, to see that they are kept, also behind the inner scope
      EXPECT_EQ(passes(kept), want);
    }
    EXPECT_EQ(passes(kept), passes(plain));
    EXPECT_NE(passes(kept), want);
    w[7] -= 1;
  }
}
TEST(FrozenWeights, GiveTheSameBits) { checkFrozen(4); }
TEST(FrozenWeights, ProductsGiveTheSameBits) { checkFrozen(20); }

// Memory may be missing for one pass, and be there for the next.
TEST(FrozenWeights, ThatCouldNotBePackedArePackedTheNextTime) {
  Context context(*isasHere().front(), 1);
  const FrozenWeights frozen(context);
  const float weights[2] = {1, 2};
  const Packing packing{Packing::kForward, weights, {}};
  int packs = 0;
  const auto packed = [&](bool fails) {
    return context.scratch().packedWeights(packing, 2, [&](float* to) {
      ++packs;
      if (fails) throw std::bad_alloc();
      std::copy_n(weights, 2, to);
    });
  };
  EXPECT_THROW(packed(true), std::bad_alloc);
  for (int time = 0; time < 2; ++time) EXPECT_EQ(packed(false)[1], 2);
  EXPECT_EQ(packs, 2);
}

}  // namespace
}  // namespace crema::kernels
