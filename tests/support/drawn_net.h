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
  explicit DrawnNet(unsigned seed, bool norms = false) : random_(seed), kinds_(norms ? 19 : 16) {
    const int side = std::array{5, 7, 14, 19}[of(4)];
    channels_ = (side < 10 ? std::array{4, 4, 16, 32} : std::array{4, 4, 4, 16})[of(4)];
    add(fmt::format("name: 'x' type: 'Input' top: 'x' input_param {{ shape {{ dim: {} dim: {} dim: {} dim: {} }} }}",
                    std::array{1, 2, 7, 17}[of(4)], channels_, side, side));
    blobs_ = {"x"};
    if (of(4) == 0) addStem();
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
    if (options.find("loss_weight") != std::string::npos) read_.insert(name);
  }
  void addLayer(const std::string& name) {
    const size_t kind = of(kinds_);
    if (kind < 4)
      addSingle("Convolution", name, convolution(std::array{1, 3, 3, 5}[kind]), false);
    else if (kind == 4)
      addSingle("BatchNorm", name, "", true);
    else if (kind == 5)
      addSingle("Scale", name,
                fmt::format("scale_param {{ filler {} bias_term: {} bias_filler {} }}", kFiller, of(2) != 0, kFiller),
                true);
    else if (kind == 6)
      addSingle("ReLU", name, of(2) ? "" : "relu_param { negative_slope: 0.1 }", true);
    else if (kind == 7)
      addSingle("Dropout", name, "", true);
    else if (kind == 8)
      addSingle("Pooling", name, "pooling_param { pool: AVE kernel_size: 3 pad: 1 }", false);
    else if (kind == 9)
      addSum(name);
    else if (kind == 10)
      addSingle("Pooling", name, "pooling_param { pool: MAX kernel_size: 3 pad: 1 }", false);
    else if (kind == 11)
      addSingle("LRN", name, "lrn_param { local_size: 3 alpha: 0.3 }", false);
    else if (kind == 12)
      addSingle("Reshape", name, "reshape_param { shape { dim: 0 dim: 0 dim: 0 dim: 0 } }", false);
    else if (kind == 13)
      addExchange(name);
    else if (kind == 14)
      addSilence(name);
    else if (kind == 15)
      addPooled(name);
    else
      addNorm(name);
  }
  // Of k x k taps, which may be further apart; its outputs have the shape of its inputs. Some share their parameters.
  std::string convolution(int k) {
    const int gap = k == 3 && of(4) == 0 ? 2 : 1, groups = std::array{1, 1, 2, channels_}[of(4)];
    const bool bias = of(2), shared = bias && groups == 1 && of(3) == 0;
    return fmt::format(
        "convolution_param {{ num_output: {} kernel_size: {} pad: {} dilation: {} group: {} bias_term: {} "
        "weight_filler {} bias_filler {} }} {} {}",
        channels_, k, k / 2 * gap, gap, groups, bias, kFiller, kFiller,
        shared ? fmt::format("param {{ name: 'w{0}' }} param {{ name: 'b{0}' }}", k) : "",
        of(8) ? "" : "loss_weight: 0.5");
  }
  // A strided convolution, of whose outputs' shape all others are.
  void addStem() {
    add(
        fmt::format("name: 'stem' type: 'Convolution' bottom: 'x' top: 'stem' convolution_param {{ num_output: {} "
                    "kernel_size: {} stride: 2 pad: 1 weight_filler {} }}",
                    channels_, std::array{3, 5}[of(2)], kFiller));
    blobs_ = {"stem"};
  }
  // Half of the channels in the other half's place.
  void addExchange(const std::string& name) {
    const std::string bottom = any();
    read_.insert(bottom);
    add(fmt::format("name: '{0}s' type: 'Slice' bottom: '{1}' top: '{0}p' top: '{0}q'", name, bottom));
    add(fmt::format("name: '{0}' type: 'Concat' bottom: '{0}q' bottom: '{0}p' top: '{0}'", name));
    blobs_.push_back(name);
  }
  void addSilence(const std::string& name) {
    const std::string bottom = any();
    read_.insert(bottom);
    add(fmt::format("name: '{}' type: 'Silence' bottom: '{}'", name, bottom));
  }
  // Maxima of a convolution's outputs behind a ReLU.
  void addPooled(const std::string& name) {
    const std::string bottom = any();
    read_.insert(bottom);
    add(
        fmt::format("name: '{0}c' type: 'Convolution' bottom: '{1}' top: '{0}c' convolution_param {{ num_output: {2} "
                    "kernel_size: 1 weight_filler {{ type: 'gaussian' std: 0.3 }} }}",
                    name, bottom, channels_));
    add(fmt::format("name: '{0}r' type: 'ReLU' bottom: '{0}c' top: '{0}c'", name));
    add(fmt::format("name: '{0}' type: 'Pooling' bottom: '{0}c' top: '{0}' pooling_param {{ kernel_size: 3 pad: 1 }}",
                    name));
    blobs_.push_back(name);
    if (of(4) == 0) blobs_.insert(blobs_.end() - 1, name + "c"), read_.insert(name + "c");
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

  static constexpr const char* kFiller = "{ type: 'gaussian' std: 0.3 }";
  std::mt19937 random_;
  size_t kinds_;
  int channels_ = 4;
  std::string text_;
  std::vector<std::string> blobs_;
  std::set<std::string> read_;
};

}  // namespace crema::test
