// What the conformance suite of layers (engine/layers/conformance_test.cc) walks: cases, each from the test file of its
// layer.
//
//   LAYER_CASES(ReLU) {
//     s.add("type: 'ReLU'", {{4, 9}}).naive = [](const auto& x) { ... };
//     s.bad("type: 'ReLU'", {{1}, {1}}, "takes 1 bottom blob(s)");
//   }
#pragma once
#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "layers/registry.h"
#include "model/proto_io.h"

namespace crema::conformance {

using Values = std::vector<double>;

struct Case {
  std::string description;  // LayerParameter
  std::vector<Shape> bottoms;
  // Filled with numbers in [-1, 1), or by `input` from u in [0, 1), or bottom 1 with class numbers below `classes`.
  int classes = 0;
  std::function<double(size_t bottom, int k, double u)> input = nullptr;
  std::function<Values(const std::vector<Values>& bottoms)> naive = nullptr;  // top 0, where a formula is short
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
#define LAYER_CASES(NAME)                                                            \
  static void casesOf##NAME(crema::conformance::Suite&);                             \
  static const crema::conformance::Registration registrationOf##NAME(casesOf##NAME); \
  static void casesOf##NAME([[maybe_unused]] crema::conformance::Suite& s)

// A naive function that goes over bottom 0 element by element.
template <class F>
std::function<Values(const std::vector<Values>&)> elementwise(F f) {
  return [f](const std::vector<Values>& x) {
    Values y;
    for (const double v : x[0]) y.push_back(f(v));
    return y;
  };
}

// A layer with its blobs in one dtype.
class Bench {
 public:
  // inPlace: top 0 is bottom 0.
  Bench(const Case& c, DType dtype, caffe::Phase phase = caffe::TRAIN, int threads = 1, bool inPlace = false)
      : kernels_(kernels::bestIsa(), threads), gradientTops_(c.gradientTops), inPlace_(inPlace) {
    caffe::LayerParameter p = parseText<caffe::LayerParameter>(c.description, c.description);
    if (p.name().empty()) p.set_name("layer");
    LayerContext context;
    context.kernels = &kernels_, context.dtype = dtype, context.phase = phase, context.run = &run_,
    context.data = &data_;
    layer_ = builtinLayers().make(p, context);
    for (size_t i = 0; i < c.bottoms.size(); ++i) bottoms_.push_back(std::make_unique<Blob>(c.bottoms[i], dtype));
    fillBottoms(c);
    const int tops = std::max(p.top_size(), p.type() == "Silence" ? 0 : 1);
    for (int i = 0; i < tops; ++i) tops_.push_back(std::make_unique<Blob>(dtype));
    layer_->setUp(below(), above());
  }

  // Numbers that depend on nothing but bottom and element.
  void fillBottoms(const Case& c) {
    for (size_t i = 0; i < bottoms_.size(); ++i) {
      RandomKey key;
      key.step = i;
      const RandomStream r(key);
      for (int k = 0; k < bottoms_[i]->count(); ++k) {
        const auto at = static_cast<uint64_t>(k);
        const bool label = c.classes && i == 1;
        set(*bottoms_[i], k,
            c.input ? c.input(i, k, r.uniform(at))
            : label ? static_cast<double>(r.below(at, static_cast<uint64_t>(c.classes)))
                    : 2 * r.uniform(at) - 1);
      }
    }
  }

  static void set(Blob& b, int i, double v) {
    withType(b.dtype(), [&]<class T>() { b.mutableData<T>()[i] = static_cast<T>(v); });
  }
  static void setDiff(Blob& b, int i, double v) {
    withType(b.dtype(), [&]<class T>() { b.mutableDiff<T>()[i] = static_cast<T>(v); });
  }

  double forward() { return layer_->forward(below(), above()); }
  void backward() { backward(downs()); }
  void shape() { layer_->shapeTops(below(), above()); }
  void backward(const std::vector<bool>& down) { layer_->backward(above(), down, below()); }
  std::vector<bool> downs() const {
    std::vector<bool> d;
    for (size_t i = 0; i < bottoms_.size(); ++i) d.push_back(layer_->allowsForceBackward(static_cast<int>(i)));
    return d;
  }
  // sum over all tops of weight * value, the weights fixed odd numbers; loss tops keep their loss weight.
  double objective() {
    forward();
    double total = 0;
    each([&](Blob& b, int i, double w) { total += w * b.dataAt(i); });
    return total;
  }
  void seedTopDiffs() {
    each([&](Blob& b, int i, double w) { setDiff(b, i, w); });
  }

  std::vector<double> topData(int i) const { return values(*above()[static_cast<size_t>(i)]); }
  static std::vector<double> values(const Blob& b) {
    std::vector<double> v;
    for (int i = 0; i < b.count(); ++i) v.push_back(b.dataAt(i));
    return v;
  }
  std::vector<std::unique_ptr<Blob>>& bottoms() { return bottoms_; }
  std::vector<std::unique_ptr<Blob>>& tops() { return tops_; }
  Layer& layer() { return *layer_; }
  RunState& run() { return run_; }

 private:
  Blobs below() const { return pointers(bottoms_); }
  Blobs above() const {
    Blobs tops = pointers(tops_);
    if (inPlace_) tops[0] = bottoms_[0].get();
    return tops;
  }
  static Blobs pointers(const std::vector<std::unique_ptr<Blob>>& v) {
    Blobs p;
    for (const auto& b : v) p.push_back(b.get());
    return p;
  }
  void each(const std::function<void(Blob&, int, double)>& use) {
    const Blobs tops = above();
    for (size_t t = 0; t < std::min(tops.size(), gradientTops_); ++t)
      for (int i = 0; i < tops[t]->count(); ++i)
        use(*tops[t], i,
            layer_->isLoss() ? layer_->lossWeight(static_cast<int>(t))
                             : 0.5 + 0.25 * ((i * 7 + static_cast<int>(t)) % 5));
  }

  kernels::Context kernels_;
  size_t gradientTops_;
  bool inPlace_;
  RunState run_;
  DataOptions data_;
  std::unique_ptr<Layer> layer_;
  std::vector<std::unique_ptr<Blob>> bottoms_, tops_;
};

// The sentence with which set-up or the first pass fails.
inline std::string refusal(const std::string& description, std::vector<Shape> bottoms) {
  try {
    Case c;
    c.description = description, c.bottoms = std::move(bottoms);
    Bench b(c, DType::kFloat32);
    b.forward();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace crema::conformance
