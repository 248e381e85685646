// One conformance suite for all layer types; their cases stand in <layer>_test.cc. Forward against a naive function in
// double, gradients against central differences, float against double, accumulation, propagate_down, in place,
// reshaping, bad descriptions. The registry is walked: a type without a case or without its one-line summary fails.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

const Suite& suite() {
  static const Suite all = [] {
    Suite s;
    for (const Author author : authors()) author(s);
    return s;
  }();
  return all;
}

// Data layers read records; data/data_test.cc and tests/end_to_end check what they deliver. HDF5: hdf5_data_test.cc.
// Python layers compute in a host program: tests/python.
const std::set<std::string> kElsewhere = {"Data", "MemoryData", "CoSData", "HDF5Data", "HDF5Output", "Python"};

TEST(Layers, EveryTypeHasACaseAndASummary) {
  std::set<std::string> covered = kElsewhere;
  for (const Case& c : suite().cases) covered.insert(parseText<caffe::LayerParameter>(c.description, "case").type());
  for (const auto& [type, entry] : builtinLayers().entries()) {
    EXPECT_TRUE(covered.count(type)) << type << " has no case in the conformance suite";
    EXPECT_FALSE(entry.summary.empty()) << type;
  }
}

TEST(Layers, ForwardIsTheFormula) {
  for (const Case& c : suite().cases) {
    if (!c.naive && !c.formula) continue;
    SCOPED_TRACE(c.description);
    Bench b(c, DType::kFloat64);
    std::vector<Values> in, params;
    for (auto& bottom : b.bottoms()) in.push_back(Bench::values(*bottom));
    for (auto& param : b.layer().params()) params.push_back(Bench::values(*param));
    b.forward();
    const std::vector<Values> want = c.formula ? c.formula(in, params) : std::vector<Values>{c.naive(in)};
    for (size_t t = 0; t < want.size(); ++t) {
      const auto got = b.topData(static_cast<int>(t));
      ASSERT_EQ(got.size(), want[t].size());
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i], want[t][i], 1e-12 * std::max(1.0, std::fabs(want[t][i])))
            << "top " << t << ", element " << i;
    }
  }
}

Values diffs(const Blob& b) {
  Values v;
  for (int i = 0; i < b.count(); ++i) v.push_back(b.diffAt(i));
  return v;
}

// Calls body for every case that has gradients, in double, after one forward and backward pass.
void eachSmoothCase(const std::function<void(Bench&)>& body) {
  for (const Case& c : suite().cases) {
    if (!c.smooth) continue;
    SCOPED_TRACE(c.description);
    Bench b(c, DType::kFloat64);
    b.forward();
    b.seedTopDiffs();
    b.backward();
    body(b);
  }
}

TEST(Layers, GradientsMatchCentralDifferences) {
  constexpr double kStep = 1e-5;
  eachSmoothCase([&](Bench& b) {
    const auto check = [&](Blob& blob, const char* what) {
      for (int i = 0; i < blob.count(); ++i) {
        const double x = blob.dataAt(i), analytic = blob.diffAt(i);
        Bench::set(blob, i, x + kStep);
        const double above = b.objective();
        Bench::set(blob, i, x - kStep);
        const double below = b.objective();
        Bench::set(blob, i, x);
        const double numeric = (above - below) / (2 * kStep);
        ASSERT_NEAR(analytic, numeric, 1e-6 * std::max({1.0, std::fabs(analytic), std::fabs(numeric)}))
            << what << ", element " << i;
      }
    };
    const auto down = b.downs();
    for (size_t i = 0; i < b.bottoms().size(); ++i)
      if (down[i]) check(*b.bottoms()[i], "bottom");
    for (size_t p = 0; p < b.layer().params().size(); ++p)
      if (!b.layer().keptPerPass(static_cast<int>(p))) check(*b.layer().params()[p], "parameter");
  });
}

TEST(Layers, ParameterGradientsAccumulateAndBottomGradientsDoNot) {
  eachSmoothCase([&](Bench& b) {
    std::vector<double> params, bottoms;
    for (auto& p : b.layer().params())
      for (int i = 0; i < p->count(); ++i) params.push_back(p->diffAt(i));
    for (auto& x : b.bottoms())
      for (int i = 0; i < x->count(); ++i) bottoms.push_back(x->diffAt(i));
    b.seedTopDiffs();
    b.backward();
    size_t k = 0;
    for (size_t p = 0; p < b.layer().params().size(); ++p) {
      const double times = b.layer().keptPerPass(static_cast<int>(p)) ? 1 : 2;  // not of a backward pass
      for (int i = 0; i < b.layer().params()[p]->count(); ++i, ++k)
        EXPECT_NEAR(b.layer().params()[p]->diffAt(i), times * params[k], 1e-9 * std::max(1.0, std::fabs(params[k])));
    }
    k = 0;
    for (auto& x : b.bottoms())
      for (int i = 0; i < x->count(); ++i, ++k) EXPECT_EQ(x->diffAt(i), bottoms[k]);
  });
}

TEST(Layers, FloatFollowsDouble) {
  for (const Case& c : suite().cases) {
    SCOPED_TRACE(c.description);
    Bench d(c, DType::kFloat64), f(c, DType::kFloat32, caffe::TRAIN, 2);
    for (size_t i = 0; i < c.bottoms.size(); ++i)
      for (int k = 0; k < d.bottoms()[i]->count(); ++k) Bench::set(*d.bottoms()[i], k, f.bottoms()[i]->dataAt(k));
    for (size_t i = 0; i < d.layer().params().size(); ++i)
      for (int k = 0; k < d.layer().params()[i]->count(); ++k)
        Bench::set(*d.layer().params()[i], k, f.layer().params()[i]->dataAt(k));
    d.forward(), f.forward();
    for (size_t t = 0; t < d.tops().size(); ++t) {
      ASSERT_TRUE(d.tops()[t]->shape() == f.tops()[t]->shape());
      for (int i = 0; i < d.tops()[t]->count(); ++i) EXPECT_NEAR(d.tops()[t]->dataAt(i), f.tops()[t]->dataAt(i), 2e-5);
    }
    if (!c.smooth) continue;
    d.seedTopDiffs(), f.seedTopDiffs();
    d.backward(), f.backward();
    for (size_t i = 0; i < c.bottoms.size(); ++i)
      for (int k = 0; k < d.bottoms()[i]->count(); ++k)
        EXPECT_NEAR(d.bottoms()[i]->diffAt(k), f.bottoms()[i]->diffAt(k), 5e-5);
    for (size_t i = 0; i < d.layer().params().size(); ++i)
      for (int k = 0; k < d.layer().params()[i]->count(); ++k)
        EXPECT_NEAR(d.layer().params()[i]->diffAt(k), f.layer().params()[i]->diffAt(k), 2e-4);
  }
}

bool sharesDiff(Bench& b, size_t bottom) {
  for (auto& top : b.tops())
    if (top->diff<double>() == b.bottoms()[bottom]->diff<double>()) return true;
  return false;
}

// A pass that is told to leave a bottom alone leaves its gradient alone, and gives the others what they had.
TEST(Layers, PropagateDownIsHonoured) {
  eachSmoothCase([](Bench& b) {
    const auto downs = b.downs();
    std::vector<Values> wanted;
    for (auto& x : b.bottoms()) wanted.push_back(diffs(*x));
    for (size_t off = 0; off < downs.size(); ++off) {
      if (!downs[off]) continue;
      auto some = downs;
      some[off] = false;
      for (auto& x : b.bottoms()) x->fillDiff(77);
      b.seedTopDiffs();
      b.backward(some);
      for (size_t i = 0; i < downs.size(); ++i)
        if (some[i]) {
          EXPECT_EQ(diffs(*b.bottoms()[i]), wanted[i]) << "bottom " << i;
        }
      if (sharesDiff(b, off)) continue;  // Flatten and its like: the gradient is the top's own
      for (const double d : diffs(*b.bottoms()[off])) ASSERT_EQ(d, 77) << "bottom " << off << " was not asked for";
    }
    for (size_t p = 0; p < b.layer().params().size(); ++p) {
      b.layer().setParamPropagate(static_cast<int>(p), false);
      b.layer().params()[p]->fillDiff(77);
    }
    b.seedTopDiffs();
    b.backward();
    for (auto& p : b.layer().params())
      for (const double d : diffs(*p)) ASSERT_EQ(d, 77) << "a frozen parameter got a gradient";
  });
}

// Layers that say so may overwrite their bottom: same tops, same gradients.
TEST(Layers, InPlaceChangesNothing) {
  for (const Case& c : suite().cases) {
    Bench apart(c, DType::kFloat64);
    if (!apart.layer().allowsInPlace()) continue;
    SCOPED_TRACE(c.description);
    Bench in(c, DType::kFloat64, caffe::TRAIN, 1, true);
    apart.forward(), in.forward();
    EXPECT_EQ(in.topData(0), apart.topData(0));
    if (!c.smooth) continue;
    apart.seedTopDiffs(), in.seedTopDiffs();
    apart.backward(), in.backward();
    for (size_t i = 0; i < apart.bottoms().size(); ++i)
      if (apart.downs()[i]) {
        EXPECT_EQ(diffs(*in.bottoms()[i]), diffs(*apart.bottoms()[i])) << "bottom " << i;
      }
    for (size_t p = 0; p < apart.layer().params().size(); ++p)
      EXPECT_EQ(diffs(*in.layer().params()[p]), diffs(*apart.layer().params()[p]));
  }
}

Case withOneMore(const Case& c) {
  Case more = c;
  for (Shape& s : more.bottoms) {
    std::vector<int> dims(s.dims().begin(), s.dims().end());
    if (!dims.empty()) ++dims[0];
    s = Shape(dims);
  }
  return more;
}

// A layer whose bottoms grew by an item gives what a layer made for them gives.
TEST(Layers, BottomsMayGrow) {
  for (const Case& c : suite().cases) {
    if (c.bottoms.empty() || !c.otherBatch) continue;
    SCOPED_TRACE(c.description);
    const Case more = withOneMore(c);
    Bench grown(c, DType::kFloat64), made(more, DType::kFloat64);
    grown.forward();
    for (size_t i = 0; i < more.bottoms.size(); ++i) grown.bottoms()[i]->reshape(more.bottoms[i]);
    grown.fillBottoms(more);
    for (size_t p = 0; p < made.layer().params().size(); ++p)
      grown.layer().params()[p]->copyDataFrom(*made.layer().params()[p]);
    grown.forward(), made.forward();
    for (size_t t = 0; t < made.tops().size(); ++t)
      EXPECT_EQ(grown.topData(static_cast<int>(t)), made.topData(static_cast<int>(t)));
  }
}

TEST(Layers, BadDescriptionsGetASentence) {
  for (const Bad& b : suite().refused) {
    const std::string message = refusal(b.description, b.bottoms);
    EXPECT_NE(message.find(b.expected), std::string::npos) << b.description << "\n  said: " << message;
  }
  EXPECT_NE(refusal("type: 'Ghost'", {{1}}).find("Unknown layer type: Ghost (known types: "), std::string::npos);
}

}  // namespace
}  // namespace crema::conformance
