// Helpers of the conformance suite of layers (engine/layers/conformance_test.cc) for its cases (cases.h).
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "layers/registry.h"
#include "model/proto_io.h"
#include "support/cases.h"
#include "support/guards.h"
#include "support/values_of.h"

namespace crema::conformance {

// A layer with its blobs in one dtype. Guards (guards.h) on both sides of every blob's data and diff are checked after
// each pass.
class Bench {
 public:
  // inPlace: top 0 is bottom 0.
  Bench(const Case& c, DType dtype, caffe::Phase phase = caffe::TRAIN, int threads = 1, bool inPlace = false,
        const layers::LayerRegistry& registry = layers::builtinLayers())
      : kernels_(kernels::bestIsa(), threads), gradientTops_(c.gradientTops), inPlace_(inPlace) {
    caffe::LayerParameter p = model::parseText<caffe::LayerParameter>(c.description, c.description);
    if (p.name().empty()) p.set_name("layer");
    layers::LayerContext context;
    context.kernels = &kernels_, context.dtype = dtype, context.phase = phase, context.run = &run_,
    context.data = &data_;
    layer_ = registry.make(p, context);
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

  double forward() {
    shape();
    return guarded([&] { return layer_->forward(below(), above()); });
  }
  void backward() { backward(downs()); }
  void shape() { layer_->shapeTops(below(), above()); }
  void backward(const std::vector<bool>& down) {
    guarded([&] { return layer_->backward(above(), down, below()), 0.0; });
  }
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

  std::vector<double> topData(int i) const { return test::valuesOf(*above()[static_cast<size_t>(i)]); }
  std::vector<std::unique_ptr<Blob>>& bottoms() { return bottoms_; }
  std::vector<std::unique_ptr<Blob>>& tops() { return tops_; }
  layers::Layer& layer() { return *layer_; }
  layers::RunState& run() { return run_; }

 private:
  layers::Blobs below() const { return pointers(bottoms_); }
  layers::Blobs above() const {
    layers::Blobs tops = pointers(tops_);
    if (inPlace_) tops[0] = bottoms_[0].get();
    return tops;
  }
  static layers::Blobs pointers(const std::vector<std::unique_ptr<Blob>>& v) {
    layers::Blobs p;
    for (const auto& b : v) p.push_back(b.get());
    return p;
  }
  double guarded(const std::function<double()>& pass) {
    Guards guards;
    for (const auto& b : bottoms_) guards.around(*b);
    for (const auto& b : tops_) guards.around(*b);
    for (const auto& b : layer_->params()) guards.around(*b);
    const double loss = pass();
    guards.check(layer_->label());
    return loss;
  }
  void each(const std::function<void(Blob&, int, double)>& use) {
    const layers::Blobs tops = above();
    for (size_t t = 0; t < std::min(tops.size(), gradientTops_); ++t)
      for (int i = 0; i < tops[t]->count(); ++i)
        use(*tops[t], i,
            layer_->isLoss() ? layer_->lossWeight(static_cast<int>(t))
                             : 0.5 + 0.25 * ((i * 7 + static_cast<int>(t)) % 5));
  }

  kernels::Context kernels_;
  size_t gradientTops_;
  bool inPlace_;
  layers::RunState run_;
  layers::DataOptions data_;
  std::unique_ptr<layers::Layer> layer_;
  std::vector<std::unique_ptr<Blob>> bottoms_, tops_;
};

// A description of the first gradient of the last backward pass that central differences do not confirm, or nullopt.
inline std::optional<std::string> gradientMistake(Bench& b) {
  constexpr double kStep = 1e-5;
  std::optional<std::string> mistake;
  const auto check = [&](Blob& blob, const char* what, size_t which) {
    for (int i = 0; i < blob.count() && !mistake; ++i) {
      const double x = blob.dataAt(i), analytic = blob.diffAt(i);
      Bench::set(blob, i, x + kStep);
      const double above = b.objective();
      Bench::set(blob, i, x - kStep);
      const double below = b.objective();
      Bench::set(blob, i, x);
      const double numeric = (above - below) / (2 * kStep);
      const double bound = 1e-6 * std::max({1.0, std::fabs(analytic), std::fabs(numeric)});
      if (!(std::fabs(analytic - numeric) <= bound))
        mistake =
            fmt::format("{} {}, element {}: the layer says {}, differences {}", what, which, i, analytic, numeric);
    }
  };
  const auto down = b.downs();
  for (size_t i = 0; i < b.bottoms().size(); ++i)
    if (down[i]) check(*b.bottoms()[i], "bottom", i);
  for (size_t p = 0; p < b.layer().params().size(); ++p)
    if (!b.layer().keptPerPass(static_cast<int>(p))) check(*b.layer().params()[p], "parameter", p);
  return mistake;
}

// The error message of set-up or the first pass.
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
