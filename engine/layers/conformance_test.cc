// One conformance suite for all layer types; their cases stand in <layer>_test.cc. Forward against a naive function in
// double, gradients against central differences, float against double, both phases, accumulation, propagate_down, in
// place, reshaping, bad descriptions, with guards around every blob. registry_walk_test.cc checks that no type is left
// out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

void expectOutcome(const std::vector<Values>& want, const Bench& b) {
  for (size_t t = 0; t < want.size(); ++t) {
    const auto got = b.topData(static_cast<int>(t));
    ASSERT_EQ(got.size(), want[t].size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], want[t][i], 1e-12 * std::max(1.0, std::fabs(want[t][i]))) << "top " << t << ", element " << i;
  }
}

TEST(Layers, ForwardIsTheFormula) {
  for (const Case& c : suite().cases) {
    if (!c.naive && !c.formula) continue;
    SCOPED_TRACE(c.description);
    Bench b(c, DType::kFloat64);
    std::vector<Values> in, params;
    for (auto& bottom : b.bottoms()) in.push_back(test::valuesOf(*bottom));
    for (auto& param : b.layer().params()) params.push_back(test::valuesOf(*param));
    b.forward();
    const std::vector<Values> want = c.formula ? c.formula(in, params) : std::vector<Values>{c.naive(in)};
    EXPECT_EQ(want.size(), c.formula ? b.tops().size() : 1);
    expectOutcome(want, b);
  }
}

// Phase TEST gives the same tops as TRAIN, unless the case has a function of its own for it.
TEST(Layers, TestsGiveWhatTrainingGivesOrSayWhat) {
  for (const Case& c : suite().cases) {
    SCOPED_TRACE(c.description);
    Bench train(c, DType::kFloat64), test(c, DType::kFloat64, caffe::TEST, 2);
    std::vector<Values> in;
    for (auto& bottom : test.bottoms()) in.push_back(test::valuesOf(*bottom));
    train.forward(), test.forward();
    if (c.inTest) {
      expectOutcome({c.inTest(in)}, test);
      EXPECT_NE(test.topData(0), train.topData(0)) << "the case need not say what tests give";
      continue;
    }
    for (size_t t = 0; t < train.tops().size(); ++t)
      EXPECT_EQ(test.topData(static_cast<int>(t)), train.topData(static_cast<int>(t)));
  }
}

Values diffs(const Blob& b) {
  Values v;
  for (int i = 0; i < b.count(); ++i) v.push_back(b.diffAt(i));
  return v;
}

// Calls body for every case that has gradients, in both phases, in double, after one forward and backward pass.
void eachSmoothCase(const std::function<void(Bench&)>& body) {
  for (const Case& c : suite().cases)
    for (const caffe::Phase phase : {caffe::TRAIN, caffe::TEST}) {
      if (!c.smooth) continue;
      SCOPED_TRACE(c.description + (phase == caffe::TEST ? " in TEST" : ""));
      Bench b(c, DType::kFloat64, phase);
      b.forward();
      b.seedTopDiffs();
      b.backward();
      body(b);
    }
}

TEST(Layers, GradientsMatchCentralDifferences) {
  eachSmoothCase([](Bench& b) { EXPECT_EQ(gradientMistake(b).value_or("none"), "none"); });
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
      // Gradients of two passes add up; running statistics have none.
      const double times = b.layer().keptPerPass(static_cast<int>(p)) ? 1 : 2;
      for (int i = 0; i < b.layer().params()[p]->count(); ++i, ++k)
        EXPECT_NEAR(b.layer().params()[p]->diffAt(i), times * params[k], 1e-9 * std::max(1.0, std::fabs(params[k])));
    }
    k = 0;
    for (auto& x : b.bottoms())
      for (int i = 0; i < x->count(); ++i, ++k) EXPECT_EQ(x->diffAt(i), bottoms[k]);
  });
}

void spoil(std::vector<std::unique_ptr<Blob>>& blobs) {
  for (auto& blob : blobs)
    for (int i = 0; i < blob->count(); ++i) Bench::set(*blob, i, NAN);
}

// What a layer does not declare that its backward pass reads may hold anything by then.
TEST(Layers, BackwardReadsNoMoreThanIsDeclared) {
  const auto gradients = [](const Case& c, DType dtype, bool spoilt) {
    Bench b(c, dtype);
    b.forward();
    const layers::Layer::Reads reads = b.layer().readsBackward();
    if (spoilt && !reads.tops) spoil(b.tops());
    if (spoilt && !reads.bottoms) spoil(b.bottoms());
    b.seedTopDiffs();
    b.backward();
    std::vector<Values> all;
    for (auto& bottom : b.bottoms()) all.push_back(diffs(*bottom));
    for (auto& param : b.layer().params()) all.push_back(diffs(*param));
    return all;
  };
  for (const Case& c : suite().cases)
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      if (!c.smooth) continue;
      SCOPED_TRACE(c.description);
      EXPECT_EQ(gradients(c, dtype, true), gradients(c, dtype, false));
    }
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

// Without propagate_down for a bottom its gradient is not written, and the others stay the same.
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
      if (sharesDiff(b, off)) {  // bottom and top share one gradient, which must not have been written to
        EXPECT_TRUE(b.layer().type() == "Flatten" || b.layer().type() == "Reshape") << b.layer().label();
        EXPECT_EQ(diffs(*b.bottoms()[off]), wanted[off]);
        continue;
      }
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

// Layers that allow it give the same tops and gradients when they work in place.
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

// A layer whose bottoms grow by an item computes what a new layer would; shrunk again, what it did before.
TEST(Layers, BottomsMayGrowAndShrink) {
  for (const Case& c : suite().cases) {
    if (c.bottoms.empty() || !c.otherBatch) continue;
    SCOPED_TRACE(c.description);
    const Case more = withOneMore(c);
    Bench grown(c, DType::kFloat64), made(more, DType::kFloat64);
    grown.forward();
    std::vector<Values> before, weights;
    for (size_t k = 0; k < grown.tops().size(); ++k) before.push_back(grown.topData(static_cast<int>(k)));
    for (auto& p : grown.layer().params()) weights.push_back(test::valuesOf(*p));
    for (size_t i = 0; i < more.bottoms.size(); ++i) grown.bottoms()[i]->reshape(more.bottoms[i]);
    grown.fillBottoms(more);
    for (size_t p = 0; p < made.layer().params().size(); ++p)
      grown.layer().params()[p]->copyDataFrom(*made.layer().params()[p]);
    grown.forward(), made.forward();
    for (size_t t = 0; t < made.tops().size(); ++t)
      EXPECT_EQ(grown.topData(static_cast<int>(t)), made.topData(static_cast<int>(t)));
    for (size_t i = 0; i < c.bottoms.size(); ++i) grown.bottoms()[i]->reshape(c.bottoms[i]);
    grown.fillBottoms(c);
    for (size_t p = 0; p < weights.size(); ++p)
      for (size_t k = 0; k < weights[p].size(); ++k)
        Bench::set(*grown.layer().params()[p], static_cast<int>(k), weights[p][k]);
    grown.forward();
    for (size_t k = 0; k < before.size(); ++k) EXPECT_EQ(grown.topData(static_cast<int>(k)), before[k]);
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
