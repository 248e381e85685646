// Pooling and SPP. Caffe counts windows with ceil and drops a window that begins after input + pad; ONNX gets the same
// number of windows by end pads up to the end of the last window:
//   end = (outputs - 1) stride + kernel - input - pad, never below 0 here
// MAX: padding is never the maximum in either. AVE: ONNX divides by the whole kernel (count_include_pad), Caffe by the
// window clipped at input + pad, so clipped windows are multiplied by kernel / clipped, a constant plane.
#include <algorithm>

#include "exchange/graph.h"

namespace crema::exchange {
namespace {

struct CaffeSide {
  int in, kernel, stride, pad, outputs;
  int64_t end() const { return std::max<int64_t>(0, int64_t{outputs - 1} * stride + kernel - in - pad); }
  float ratio(int i) const {
    const int from = i * stride - pad;
    return static_cast<float>(kernel) / static_cast<float>(std::min(from + kernel, in + pad) - from);
  }
};

OnnxAttributes window(const CaffeSide& h, const CaffeSide& w) {
  return {{"kernel_shape", std::vector<int64_t>{h.kernel, w.kernel}},
          {"strides", std::vector<int64_t>{h.stride, w.stride}},
          {"pads", std::vector<int64_t>{h.pad, w.pad, h.end(), w.end()}}};
}

Value average(OnnxLayer& l, const Value& x, const CaffeSide& h, const CaffeSide& w) {
  OnnxAttributes attributes = window(h, w);
  attributes.push_back({"count_include_pad", int64_t{1}});
  const Value y = l.node("AveragePool", {x}, attributes);
  if (h.end() <= h.pad && w.end() <= w.pad) return y;
  std::vector<float> ratios;
  for (int i = 0; i < h.outputs; ++i)
    for (int j = 0; j < w.outputs; ++j) ratios.push_back(h.ratio(i) * w.ratio(j));
  return l.node("Mul", {y, l.floats({1, 1, h.outputs, w.outputs}, ratios)});
}

// sum x^2 / sum x, 0 where all are 0: the expectation of stochastic pooling.
Value expectation(OnnxLayer& l, const Value& x, const CaffeSide& h, const CaffeSide& w) {
  const Value sum = average(l, x, h, w), squares = average(l, l.node("Mul", {x, x}), h, w);
  const Value empty = l.node("Equal", {sum, l.number(0)});
  return l.node("Div", {squares, l.node("Where", {empty, l.number(1), sum})});
}

// The index of the maximum in its plane; ONNX counts through all planes.
Value mask(OnnxLayer& l, const Value& indices) {
  const Value place = l.node("Mod", {indices, l.ints({int64_t{l.in()[2]} * l.in()[3]})});
  return l.node("Cast", {place}, {{"to", int64_t{::onnx::TensorProto::FLOAT}}});
}

void pooling(OnnxLayer& l) {
  const auto& p = l.param().pooling_param();
  const Shape &in = l.in(), &out = l.out();
  const auto side = [&](int axis, bool has, uint32_t kernel, bool hasStride, uint32_t stride, bool hasPad,
                        uint32_t pad) {
    const uint32_t k = p.global_pooling() ? static_cast<uint32_t>(in[axis]) : has ? kernel : p.kernel_size();
    return CaffeSide{in[axis], static_cast<int>(k), static_cast<int>(hasStride ? stride : p.stride()),
                     static_cast<int>(hasPad ? pad : p.pad()), out[axis]};
  };
  const CaffeSide h = side(2, p.has_kernel_h(), p.kernel_h(), p.has_stride_h(), p.stride_h(), p.has_pad_h(), p.pad_h());
  const CaffeSide w = side(3, p.has_kernel_w(), p.kernel_w(), p.has_stride_w(), p.stride_w(), p.has_pad_w(), p.pad_w());
  for (const CaffeSide& s : {h, w})
    if ((s.outputs - 1) * s.stride >= s.in + s.pad)
      l.refuse("its last window begins at {}, outside the input of {}; use round_mode: FLOOR",
               (s.outputs - 1) * s.stride, s.in);
  if (p.pool() == caffe::PoolingParameter::STOCHASTIC && l.param().phase() == caffe::TRAIN)
    l.refuse("its phase is TRAIN, where it draws random numbers; remove `phase`");
  if (p.pool() == caffe::PoolingParameter::AVE) return l.top(average(l, l.bottom(), h, w));
  if (p.pool() == caffe::PoolingParameter::STOCHASTIC) return l.top(expectation(l, l.bottom(), h, w));
  const auto y = l.nodes("MaxPool", l.tops(), {l.bottom()}, window(h, w));
  l.top(0, y[0]);
  if (y.size() > 1) l.top(1, mask(l, y[1]));
}

// Level l: 2^l bins on each axis, of kernel = stride = ceil(in / bins), pad as in engine/layers/spp.cc.
void pyramid(OnnxLayer& l) {
  const auto& p = l.param().spp_param();
  std::vector<Value> levels;
  for (uint32_t level = 0; level < p.pyramid_height(); ++level) {
    const int bins = 1 << level;
    const auto side = [&](int n) {
      const int k = (n + bins - 1) / bins, pad = (k * bins - n + 1) / 2;
      if (pad >= k)
        l.refuse("{} bins on an axis of {} leave some of them empty; use a smaller pyramid_height", bins, n);
      return CaffeSide{n, k, k, pad, bins};
    };
    const CaffeSide h = side(l.in()[2]), w = side(l.in()[3]);
    const Value y = p.pool() == caffe::SPPParameter::MAX   ? l.node("MaxPool", {l.bottom()}, window(h, w))
                    : p.pool() == caffe::SPPParameter::AVE ? average(l, l.bottom(), h, w)
                                                           : expectation(l, l.bottom(), h, w);
    levels.push_back(p.pyramid_height() == 1 ? y : l.node("Flatten", {y}, {{"axis", int64_t{1}}}));
  }
  l.top(levels.size() == 1 ? levels[0] : l.node("Concat", levels, {{"axis", int64_t{1}}}));
}

}  // namespace

void addOnnxPooling(OnnxConversions& all) { all.insert({{"Pooling", pooling}, {"SPP", pyramid}}); }

}  // namespace crema::exchange
