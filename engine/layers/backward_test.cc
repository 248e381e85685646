// A backward pass that a host calls before any forward pass, or after bottoms changed their sizes. Each type must stay
// inside its memory (checked by the preset dev), and later passes must not be affected.
#include <gtest/gtest.h>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

Values everyGradient(Bench& b) {
  Values all;
  const auto add = [&](const Blob& blob) {
    for (int i = 0; i < blob.count(); ++i) all.push_back(blob.diffAt(i));
  };
  const auto down = b.downs();
  for (size_t i = 0; i < down.size(); ++i)
    if (down[i]) add(*b.bottoms()[i]);
  for (size_t p = 0; p < b.layer().params().size(); ++p)
    if (!b.layer().keptPerPass(static_cast<int>(p))) add(*b.layer().params()[p]);
  return all;
}

void clear(Bench& b) {
  for (auto& p : b.layer().params()) p->fillDiff(0);
}

Values passes(Bench& b) {
  clear(b);
  b.forward();
  b.seedTopDiffs();
  b.backward();
  return everyGradient(b);
}

// The values are meaningless, and an error is allowed (STOCHASTIC pooling of negative numbers).
void backwardOnly(Bench& b) {
  b.seedTopDiffs();
  try {
    b.backward();
  } catch (const Error&) {
  }
}

// Calls body(case, in place) for all cases that have a gradient.
void eachCase(const std::function<void(const Case&, bool)>& body) {
  Suite suite;
  for (const Author author : authors()) author(suite);
  size_t types = 0;
  for (const Case& c : suite.cases) {
    if (!c.smooth) continue;
    SCOPED_TRACE(c.description);
    const bool may = Bench(c, DType::kFloat64).layer().allowsInPlace();
    for (int inPlace = 0; inPlace <= int{may}; ++inPlace) body(c, inPlace), ++types;
  }
  EXPECT_GT(types, 100U);
}

TEST(Backward, NeedsNoForward) {
  eachCase([](const Case& c, bool inPlace) {
    Bench fresh(c, DType::kFloat64, caffe::TRAIN, 2, inPlace), wanted(c, DType::kFloat64, caffe::TRAIN, 2, inPlace);
    backwardOnly(fresh);
    fresh.fillBottoms(c);
    EXPECT_EQ(passes(fresh), passes(wanted));
  });
}

Case withItems(const Case& c, int times) {
  Case more = c;
  for (Shape& s : more.bottoms) {
    std::vector<int> dims = s.dims();
    if (!dims.empty()) dims[0] *= times;
    s = Shape(dims);
  }
  return more;
}

void resize(Bench& b, const Case& to) {
  for (size_t i = 0; i < to.bottoms.size(); ++i) b.bottoms()[i]->reshape(to.bottoms[i]);
  b.fillBottoms(to);
}

// Grows to 50 times the items and shrinks again, with a backward pass after each reshape, as after Net::reshape().
TEST(Backward, MayFollowAnotherSize) {
  eachCase([](const Case& c, bool inPlace) {
    if (!c.otherBatch || c.bottoms.empty()) return;
    const Case more = withItems(c, 50);
    Bench b(c, DType::kFloat64, caffe::TRAIN, 2, inPlace), wanted(c, DType::kFloat64, caffe::TRAIN, 2, inPlace);
    passes(b);
    for (const Case* next : {&more, &c}) {
      resize(b, *next);
      b.shape();
      backwardOnly(b);
      if (next == &more) b.fillBottoms(more), b.forward();
    }
    b.fillBottoms(c);
    EXPECT_EQ(passes(b), passes(wanted));
  });
}

// Indices of maxima of large planes lie outside of small ones: every gradient must stay inside its own plane.
TEST(Backward, PoolingStaysInSmallerPlanes) {
  for (const char* description :
       {"type: 'Pooling' pooling_param { kernel_size: 2 stride: 1 }", "type: 'SPP' spp_param { pyramid_height: 1 }",
        "type: 'SPP' spp_param { pyramid_height: 2 }"}) {
    SCOPED_TRACE(description);
    Case large, small;
    large.description = small.description = description;
    large.bottoms = {{1, 2, 9, 9}}, small.bottoms = {{1, 6, 3, 3}};
    Bench b(large, DType::kFloat64);
    b.forward();
    resize(b, small);
    b.shape();
    b.seedTopDiffs();
    b.backward();
    double below = 0, above = 0;
    for (int i = 0; i < b.bottoms()[0]->count(); ++i) below += b.bottoms()[0]->diffAt(i);
    for (int i = 0; i < b.tops()[0]->count(); ++i) above += b.tops()[0]->diffAt(i);
    EXPECT_NEAR(below, above, 1e-12);
  }
}

// After a reshape that changes no shape the backward pass still gives the same gradients.
TEST(Backward, MayFollowAReshape) {
  eachCase([](const Case& c, bool inPlace) {
    Bench b(c, DType::kFloat64, caffe::TRAIN, 2, inPlace), wanted(c, DType::kFloat64, caffe::TRAIN, 2, inPlace);
    clear(b);
    b.forward();
    b.shape();
    b.seedTopDiffs();
    b.backward();
    EXPECT_EQ(everyGradient(b), passes(wanted));
  });
}

TEST(Backward, BlobsThatTheLayerHasNotSeenGetASentence) {
  int said = 0;
  eachCase([&](const Case& c, bool inPlace) {
    if (c.bottoms.empty() || c.bottoms[0].axes() == 0) return;
    Bench b(c, DType::kFloat64, caffe::TRAIN, 1, inPlace);
    b.forward();
    resize(b, withItems(c, 50));
    try {
      b.backward();
      ADD_FAILURE() << "went back over a bottom of another size";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("in the last forward; go forward"), std::string::npos) << e.what();
      ++said;
    }
  });
  EXPECT_GT(said, 100);
}

}  // namespace
}  // namespace crema::conformance
