// MaxPool, AveragePool and the global ones.
//
// Caffe pads both sides alike and clips windows at input + pad, so only the begin of windows and their number have to
// agree: MAX is then the same, as padding is never the maximum in either. AVE divides by the window clipped at input +
// pad; ONNX by the part inside the input (count_include_pad 0), or by the window clipped at input + its own end pad.
// Where these differ a Scale with the ratios, a constant of the plane, follows; one that the model brings itself (crema
// export) cancels it.
#include <algorithm>
#include <cmath>

#include "exchange/import_windows.h"

namespace crema::exchange {
namespace {

struct OnnxSide {
  int64_t in, kernel, stride, begin, end, outputs;
  bool ceil = false;

  int64_t caffeOutputs(bool up) const {
    const int64_t room = in + 2 * begin - kernel;
    if (room < 0) return 0;
    return std::min((room + (up ? stride - 1 : 0)) / stride + 1, (in + begin - 1) / stride + 1);
  }
  double ratio(int64_t i, bool counted) const {  // Caffe's divisor by ONNX's
    const int64_t from = i * stride - begin;
    const int64_t caffe = std::min(from + kernel, in + begin) - from;
    const int64_t onnx =
        counted ? std::min(from + kernel, in + end) - from : std::min(from + kernel, in) - std::max<int64_t>(from, 0);
    return onnx > 0 ? static_cast<double>(caffe) / static_cast<double>(onnx) : 1;
  }
};

OnnxSide sideOf(const ImportNode& n, const ImportWindow& w, const Dims& in, size_t a) {
  OnnxSide s{in[a + 2], w.kernel[a], w.stride[a], w.begin[a], w.end[a], 0};
  s.ceil = n.i("ceil_mode", 0);
  const int64_t room = s.in + s.begin + s.end - s.kernel;
  if (room < 0) badData("{}: a window of {} on {} + pads", n.label(), s.kernel, s.in);
  s.outputs = (room + (s.ceil ? s.stride - 1 : 0)) / s.stride + 1;
  if (s.ceil) s.outputs = std::min(s.outputs, (s.in + s.begin - 1) / s.stride + 1);
  return s;
}

void setSides(caffe::PoolingParameter* p, const OnnxSide& h, const OnnxSide& w) {
  const auto number = [](int64_t v) { return static_cast<uint32_t>(v); };
  if (h.kernel == w.kernel)
    p->set_kernel_size(number(h.kernel));
  else
    p->set_kernel_h(number(h.kernel)), p->set_kernel_w(number(w.kernel));
  if (h.stride == w.stride)
    p->set_stride(number(h.stride));
  else
    p->set_stride_h(number(h.stride)), p->set_stride_w(number(w.stride));
  if (h.begin == w.begin)
    p->set_pad(number(h.begin));
  else
    p->set_pad_h(number(h.begin)), p->set_pad_w(number(w.begin));
}

void average(ImportNode& n, caffe::LayerParameter l, const OnnxSide& h, const OnnxSide& w) {
  const bool counted = n.i("count_include_pad", 0);
  std::vector<float> plane;
  if (h.outputs * w.outputs > (1 << 24)) n.refuse("{} x {} windows", h.outputs, w.outputs);
  for (int64_t i = 0; i < h.outputs; ++i)
    for (int64_t j = 0; j < w.outputs; ++j)
      plane.push_back(static_cast<float>(h.ratio(i, counted) * w.ratio(j, counted)));
  if (std::all_of(plane.begin(), plane.end(), [](float v) { return v == 1; })) return n.result(std::move(l));
  if (const auto* behind = n.onlyReader("Mul"); behind && behind->input_size() == 2) {
    ImportNode mul(n.graph(), *behind);
    const int at = behind->input(0) == n.proto().output(0) ? 1 : 0;
    const auto known = n.graph().values.find(behind->input(at));
    if (known != n.graph().values.end() && known->second.constant &&
        dimsOf(*known->second.constant) == Dims{1, 1, h.outputs, w.outputs}) {
      const auto factors = floatsOf(*known->second.constant);
      bool cancels = true;
      for (size_t k = 0; k < plane.size(); ++k) cancels &= std::fabs(factors[k] * plane[k] - 1) < 1e-6f;
      if (cancels) return n.graph().done.insert(behind), mul.result(std::move(l));
    }
  }
  auto scale = n.layer("Scale", {n.make(std::move(l))});
  scale.mutable_scale_param()->set_axis(2), scale.mutable_scale_param()->set_num_axes(2);
  scale.add_param()->set_lr_mult(0);
  n.weights(scale, {h.outputs, w.outputs}, plane);
  n.result(std::move(scale));
}

void pool(ImportNode& n) {
  const Dims in = n.in(), kernel = n.list("kernel_shape");
  if (in.size() != 4 || kernel.size() != 2) n.refuse("it pools {}; Pooling takes planes of 4 axes", textOf(in));
  if (n.proto().output_size() > 1 && n.graph().readers(n.proto().output(1)))
    n.refuse("its indices are read, which count through all planes; cut the model before them");
  const ImportWindow window = windowOf(n, kernel, {in[2], in[3]});
  if (window.dilation != Dims{1, 1}) n.refuse("its dilations are not 1; Pooling has none");
  const OnnxSide h = sideOf(n, window, in, 0), w = sideOf(n, window, in, 1);
  auto l = n.layer("Pooling", {n.blob()});
  auto* p = l.mutable_pooling_param();
  p->set_pool(n.op() == "MaxPool" ? caffe::PoolingParameter::MAX : caffe::PoolingParameter::AVE);
  setSides(p, h, w);
  const auto same = [&](bool up) { return h.outputs == h.caffeOutputs(up) && w.outputs == w.caffeOutputs(up); };
  if (!same(true)) {
    if (!same(false))
      n.refuse(
          "pads {} and {}, {} and {} give {} x {} windows, and Caffe's, alike on both sides, give {} x {} or {} x {}; "
          "pad its input evenly",
          h.begin, h.end, w.begin, w.end, h.outputs, w.outputs, h.caffeOutputs(true), w.caffeOutputs(true),
          h.caffeOutputs(false), w.caffeOutputs(false));
    p->set_round_mode(caffe::PoolingParameter::FLOOR);
  }
  if (n.op() == "AveragePool") return average(n, std::move(l), h, w);
  n.result(std::move(l));
}

void global(ImportNode& n) {
  if (n.in().size() != 4) n.refuse("it pools {}; Pooling takes planes of 4 axes", textOf(n.in()));
  auto l = n.layer("Pooling", {n.blob()});
  l.mutable_pooling_param()->set_pool(n.op() == "GlobalMaxPool" ? caffe::PoolingParameter::MAX
                                                                : caffe::PoolingParameter::AVE);
  l.mutable_pooling_param()->set_global_pooling(true);
  n.result(std::move(l));
}

}  // namespace

void addImportPooling(ImportConversions& all) {
  all.insert({{"AveragePool", pool}, {"GlobalAveragePool", global}, {"GlobalMaxPool", global}, {"MaxPool", pool}});
}

}  // namespace crema::exchange
