// Small nets drawn at random, for tests that compare two ways of computing one.
#pragma once
#include <array>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"

namespace crema::test {

// Convolutions, and layers that may stand behind them, in place or not.
class DrawnNet {
 public:
  // norms: also groups of BatchNorm, Scale and ReLU.
  explicit DrawnNet(unsigned seed, bool norms = false) : random_(seed), kinds_(norms ? 13 : 10) {
    const int side = std::array{5, 7, 14, 19}[of(4)];
    add(fmt::format("name: 'x' type: 'Input' top: 'x' input_param {{ shape {{ dim: {} dim: 4 dim: {} dim: {} }} }}",
                    std::array{1, 2, 7, 17}[of(4)], side, side));
    blobs_ = {"x"};
    const int layers = 4 + static_cast<int>(of(14));
    for (int i = 0; i < layers; ++i) addLayer("b" + std::to_string(i));
    if (norms) addInnerProducts();
  }
  const std::string& text() const { return text_; }
  std::set<std::string> someBlobs() {
    std::set<std::string> some;
    for (const auto& b : blobs_)
      if (of(6) == 0) some.insert(b);
    return some;
  }

 private:
  size_t of(size_t n) { return random_() % n; }
  const std::string& any() { return blobs_[of(3) ? blobs_.size() - 1 : of(blobs_.size())]; }
  void add(const std::string& body) { text_ += "layer { " + body + " }\n"; }
  bool isFree(const std::string& blob) const { return blob != "x" && !read_.count(blob); }  // for a layer in place
  // A layer of one bottom; in place where it may be and the dice say so.
  void addSingle(const std::string& type, const std::string& name, const std::string& options, bool mayBeInPlace) {
    const std::string bottom = any();
    const std::string top = mayBeInPlace && isFree(bottom) && of(2) ? bottom : name;
    if (top == name) read_.insert(bottom);
    add(fmt::format("name: '{}' type: '{}' bottom: '{}' top: '{}' {}", name, type, bottom, top, options));
    if (top == name) blobs_.push_back(top);
  }
  void addLayer(const std::string& name) {
    static const std::string filler = "{ type: 'gaussian' std: 0.3 }";
    const size_t kind = of(kinds_);
    if (kind < 4)
      addSingle("Convolution", name,
                fmt::format("convolution_param {{ num_output: 4 kernel_size: {} pad: {} group: {} bias_term: {} "
                            "weight_filler {} bias_filler {} }}",
                            kind % 2 ? 3 : 1, kind % 2, 1 + of(2), of(2) ? "true" : "false", filler, filler),
                false);
    else if (kind == 4)
      addSingle("BatchNorm", name, "", true);
    else if (kind == 5)
      addSingle("Scale", name,
                fmt::format("scale_param {{ filler {} bias_term: {} bias_filler {} }}", filler,
                            of(2) ? "true" : "false", filler),
                true);
    else if (kind == 6)
      addSingle("ReLU", name, of(2) ? "" : "relu_param { negative_slope: 0.1 }", true);
    else if (kind == 7)
      addSingle("Dropout", name, "", true);
    else if (kind == 8)
      addSingle("Pooling", name, "pooling_param { pool: AVE kernel_size: 3 pad: 1 }", false);
    else if (kind == 9)
      addSum(name);
    else
      addNorm(name);
  }
  void addNorm(const std::string& name) {
    addSingle("BatchNorm", name, "", true);
    const std::string blob = blobs_.back();
    if (!isFree(blob)) return;
    const auto behind = [&](const char* type, const char* options) {
      add(fmt::format("name: '{0}_{1}' type: '{1}' bottom: '{2}' top: '{2}' {3}", name, type, blob, options));
    };
    if (of(4))
      behind("Scale", of(2) ? "scale_param { bias_term: true filler { type: 'gaussian' std: 1 } bias_filler { type: "
                              "'gaussian' std: 1 } }"
                            : "");
    if (of(3)) behind("ReLU", of(3) ? "" : "relu_param { negative_slope: 0.2 }");
  }
  // One, or two that share their parameters.
  void addInnerProducts() {
    const std::string bottom = any();
    read_.insert(bottom);
    const bool shared = of(3) == 0;
    for (const char* name : {"ip0", "ip1"}) {
      add(fmt::format(
          "name: '{0}' type: 'InnerProduct' bottom: '{1}' top: '{0}' {2} inner_product_param {{ num_output: 6 "
          "weight_filler {{ type: 'gaussian' std: 0.1 }} }}",
          name, bottom, shared ? "param { name: 'w' } param { name: 'b' }" : ""));
      if (!shared) return;
    }
  }
  void addSum(const std::string& name) {
    const std::string a = any(), b = any();
    const std::string top = a != b && isFree(a) && of(2) ? a : name;
    if (top == name) read_.insert(a);
    read_.insert(b);
    add(fmt::format("name: '{}' type: 'Eltwise' bottom: '{}' bottom: '{}' top: '{}' {}", name, a, b, top,
                    of(4) ? "" : "eltwise_param { coeff: 1 coeff: -1 }"));
    if (top == name) blobs_.push_back(top);
  }

  std::mt19937 random_;
  size_t kinds_;
  std::string text_;
  std::vector<std::string> blobs_;
  std::set<std::string> read_;
};

}  // namespace crema::test
