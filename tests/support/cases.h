// The cases of the conformance suite of layers (engine/layers/conformance_test.cc), each from the test file of its
// layer.
//
//   LAYER_CASES(ReLU) {
//     s.add("type: 'ReLU'", {{4, 9}}).naive = [](const auto& x) { ... };
//     s.bad("type: 'ReLU'", {{1}, {1}}, "takes 1 bottom blob(s)");
//   }
#pragma once
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "tensor/shape.h"

namespace crema::conformance {

using Values = std::vector<double>;

// Of layers with weights.
inline const std::string kFiller =
    "weight_filler { type: 'gaussian' std: 0.5 } bias_filler { type: 'uniform' min: -1 max: 1 }";

struct Case {
  std::string description;  // LayerParameter
  std::vector<Shape> bottoms;
  // Filled with numbers in [-1, 1), or by `input` from u in [0, 1), or bottom 1 with class numbers below `classes`.
  int classes = 0;
  std::function<double(size_t bottom, int k, double u)> input = nullptr;
  std::function<Values(const std::vector<Values>& bottoms)> naive = nullptr;   // top 0, where a formula is short
  std::function<Values(const std::vector<Values>& bottoms)> inTest = nullptr;  // top 0 in TEST, where it differs
  std::function<std::vector<Values>(const std::vector<Values>& bottoms, const std::vector<Values>& params)> formula =
      nullptr;              // all tops, from parameters too
  bool smooth = true;       // gradients can be checked by differences
  size_t gradientTops = 9;  // tops behind these take no gradient
  bool otherBatch = true;   // takes bottoms with one more item in axis 0
};

struct Bad {
  std::string description;
  std::vector<Shape> bottoms;
  std::string expected;
};

struct Suite {
  std::list<Case> cases;
  std::list<Bad> refused;
  Case& add(const std::string& description, std::vector<Shape> bottoms) {
    cases.push_back({description, std::move(bottoms)});
    return cases.back();
  }
  // Set-up or the first pass must fail with a sentence that has `expected` in it.
  void bad(const std::string& description, std::vector<Shape> bottoms, const std::string& expected) {
    refused.push_back({description, std::move(bottoms), expected});
  }
};

using Author = void (*)(Suite&);
inline std::vector<Author>& authors() {
  static std::vector<Author> all;
  return all;
}
struct Registration {
  explicit Registration(Author author) { authors().push_back(author); }
};
// The cases of all authors.
inline const Suite& suite() {
  static const Suite all = [] {
    Suite s;
    for (const Author author : authors()) author(s);
    return s;
  }();
  return all;
}
#define LAYER_CASES(NAME)                                                            \
  static void casesOf##NAME(crema::conformance::Suite&);                             \
  static const crema::conformance::Registration registrationOf##NAME(casesOf##NAME); \
  static void casesOf##NAME([[maybe_unused]] crema::conformance::Suite& s)

// A naive function that maps bottom 0 element by element.
template <class F>
std::function<Values(const std::vector<Values>&)> elementwise(F f) {
  return [f](const std::vector<Values>& x) {
    Values y;
    for (const double v : x[0]) y.push_back(f(v));
    return y;
  };
}

// A formula of bottom 0 for layers that take every bottom to a top of its own.
template <class F>
auto forEachBottom(F f) {
  return [f](const std::vector<Values>& bottoms, const std::vector<Values>& params) {
    std::vector<Values> tops;
    for (const Values& one : bottoms) tops.push_back(f({one}, params)[0]);
    return tops;
  };
}

}  // namespace crema::conformance
