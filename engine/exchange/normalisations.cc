// BatchNorm, LRN, MVN, Softmax, Scale, Bias.
#include <algorithm>
#include <cmath>

#include "exchange/graph.h"

namespace crema::exchange {
namespace {

Value meanOver(OnnxLayer& l, const Value& x, const std::vector<int64_t>& axes) {
  return l.node("ReduceMean", {x}, {{"axes", axes}, {"keepdims", int64_t{1}}});
}

std::vector<int64_t> axesFrom(int from, int to) {
  std::vector<int64_t> axes;
  for (int a = from; a < to; ++a) axes.push_back(a);
  return axes;
}

// y = (x - mean) / sqrt(variance + eps) with the batch's own statistics.
Value byBatch(OnnxLayer& l, float eps) {
  std::vector<int64_t> axes = {0};
  for (int a = 2; a < l.in().axes(); ++a) axes.push_back(a);
  const Value z = l.node("Sub", {l.bottom(), meanOver(l, l.bottom(), axes)});
  const Value variance = l.node("Add", {meanOver(l, l.node("Mul", {z, z}), axes), l.number(eps)});
  return l.node("Div", {z, l.node("Sqrt", {variance})});
}

// With the running statistics, which Caffe stores as sums: y = factor x + offset.
void batchNorm(OnnxLayer& l) {
  const auto& p = l.param().batch_norm_param();
  const bool global = p.has_use_global_stats() ? p.use_global_stats() : l.param().phase() == caffe::TEST;
  if (!global) return l.top(byBatch(l, p.eps()));
  const double total = l.blob(2).dataAt(0), scale = total == 0 ? 0 : 1 / total;
  std::vector<float> factors, means;
  for (int c = 0; c < l.blob(0).count(); ++c) {
    const double variance = l.blob(1).dataAt(c) * scale + double{p.eps()};
    if (!(variance > 0)) l.refuse("the running variance of channel {} is not positive; the weights are damaged", c);
    factors.push_back(static_cast<float>(1 / std::sqrt(variance)));
    means.push_back(static_cast<float>(l.blob(0).dataAt(c) * scale));
  }
  std::vector<int64_t> dims(static_cast<size_t>(std::max(1, l.in().axes() - 1)), 1);
  dims[0] = static_cast<int64_t>(means.size());
  l.top(l.node("Mul", {l.node("Sub", {l.bottom(), l.floats(dims, means)}), l.floats(dims, factors)}));
}

void lrn(OnnxLayer& l) {
  const auto& p = l.param().lrn_param();
  const int64_t n = p.local_size(), pad = (n - 1) / 2;
  if (p.norm_region() == caffe::LRNParameter::ACROSS_CHANNELS)
    return l.top(l.node("LRN", {l.bottom()}, {{"alpha", p.alpha()}, {"beta", p.beta()}, {"bias", p.k()}, {"size", n}}));
  const Value mean = l.node("AveragePool", {l.node("Mul", {l.bottom(), l.bottom()})},
                            {{"kernel_shape", std::vector<int64_t>{n, n}},
                             {"pads", std::vector<int64_t>{pad, pad, pad, pad}},
                             {"count_include_pad", int64_t{1}}});
  const Value s = l.node("Add", {l.node("Mul", {mean, l.number(p.alpha())}), l.number(1)});
  l.top(l.node("Mul", {l.bottom(), l.node("Pow", {s, l.number(-double{p.beta()})})}));
}

void mvn(OnnxLayer& l) {
  const auto& p = l.param().mvn_param();
  const auto axes = axesFrom(std::min(l.in().axes(), p.across_channels() ? 1 : 2), l.in().axes());
  if (axes.empty()) return l.top(l.node("Sub", {l.bottom(), l.bottom()}));
  const Value z = l.node("Sub", {l.bottom(), meanOver(l, l.bottom(), axes)});
  if (!p.normalize_variance()) return l.top(z);
  const Value s = l.node("Sqrt", {meanOver(l, l.node("Mul", {z, z}), axes)});
  l.top(l.node("Div", {z, l.node("Add", {s, l.number(p.eps())})}));
}

void softmax(OnnxLayer& l) {
  const int64_t axis = l.in().canonicalAxis(l.param().softmax_param().axis());
  l.top(l.node("Softmax", {l.bottom()}, {{"axis", axis}}));
}

// Exports the probabilities in the second top of a loss, and nothing else of it.
void softmaxWithLoss(OnnxLayer& l) {
  const int64_t axis = l.in().canonicalAxis(l.param().softmax_param().axis());
  l.top(1, l.node("Softmax", {l.bottom()}, {{"axis", axis}}));
}

// A parameter whose axes match the bottom's from `axis` on, reshaped with trailing ones for broadcasting.
Value along(OnnxLayer& l, int axis, int param, const Shape& numbers) {
  std::vector<int64_t> dims(numbers.dims().begin(), numbers.dims().end());
  if (numbers.axes()) dims.resize(static_cast<size_t>(l.in().axes() - l.in().canonicalAxis(axis)), 1);
  if (param >= 0) return l.weight(static_cast<size_t>(param), dims);
  return dims.size() == static_cast<size_t>(numbers.axes()) ? l.bottom(1) : l.reshaped(l.bottom(1), dims);
}

void scale(OnnxLayer& l) {
  const auto& p = l.param().scale_param();
  const bool given = l.bottoms() > 1;
  const Shape& numbers = given ? l.in(1) : l.blob(0).shape();
  const Value y = l.node("Mul", {l.bottom(), along(l, p.axis(), given ? -1 : 0, numbers)});
  l.top(p.bias_term() ? l.node("Add", {y, along(l, p.axis(), given ? 0 : 1, numbers)}) : y);
}

void bias(OnnxLayer& l) {
  const bool given = l.bottoms() > 1;
  const Shape& numbers = given ? l.in(1) : l.blob(0).shape();
  l.top(l.node("Add", {l.bottom(), along(l, l.param().bias_param().axis(), given ? -1 : 0, numbers)}));
}

}  // namespace

void addOnnxNormalisations(OnnxConversions& all) {
  all.insert({{"BatchNorm", batchNorm},
              {"Bias", bias},
              {"LRN", lrn},
              {"MVN", mvn},
              {"Scale", scale},
              {"Softmax", softmax},
              {"SoftmaxWithLoss", softmaxWithLoss}});
}

}  // namespace crema::exchange
