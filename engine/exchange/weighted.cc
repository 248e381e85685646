// Convolution, Deconvolution, Im2col, InnerProduct, Embed: Caffe's weights have the shapes that ONNX asks for.
#include "exchange/graph.h"
#include "layers/window.h"

namespace crema::exchange {
namespace {

std::vector<int64_t> wide(const std::vector<int>& v) { return {v.begin(), v.end()}; }

// Bottom i for a node with a window. ONNX's channels are axis 1: with another `axis` all axes before it are merged.
Value windowed(OnnxLayer& l, const char* op, size_t i, int64_t group, const std::vector<Value>& weights) {
  const auto& p = l.param().convolution_param();
  const int axis = l.in().canonicalAxis(p.axis());
  const layers::ConvolutionWindow w = layers::readConvolutionWindow(p, l.in().axes() - axis - 1);
  if (w.axes() == 0) l.refuse("it has no spatial axis; InnerProduct does the same");
  std::vector<int64_t> pads = wide(w.pad);
  pads.insert(pads.end(), w.pad.begin(), w.pad.end());
  std::vector<Value> inputs = {l.bottom(i)};
  if (axis != 1) {
    std::vector<int64_t> dims = {-1};
    dims.insert(dims.end(), l.in().dims().begin() + axis, l.in().dims().end());
    inputs[0] = l.reshaped(inputs[0], dims);
  }
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  const Value y = l.node(op, inputs,
                         {{"kernel_shape", wide(w.kernel)},
                          {"strides", wide(w.stride)},
                          {"pads", pads},
                          {"dilations", wide(w.dilation)},
                          {"group", group}});
  return axis != 1 ? l.shapedAs(l.out(), y) : y;
}

void convolution(OnnxLayer& l) {
  const auto& p = l.param().convolution_param();
  std::vector<Value> weights = {l.weight(0)};
  if (p.bias_term()) weights.push_back(l.weight(1));
  const char* op = l.param().type() == "Convolution" ? "Conv" : "ConvTranspose";
  for (size_t i = 0; i < l.bottoms(); ++i) l.top(i, windowed(l, op, i, p.group(), weights));
}

// A convolution per channel; each kernel is 1 at one tap and 0 elsewhere.
void im2col(OnnxLayer& l) {
  const auto& p = l.param().convolution_param();
  const int axis = l.in().canonicalAxis(p.axis());
  const layers::ConvolutionWindow w = layers::readConvolutionWindow(p, l.in().axes() - axis - 1);
  const int64_t channels = l.in()[axis], taps = Shape(w.kernel).count();
  std::vector<int64_t> dims = {channels * taps, 1};
  dims.insert(dims.end(), w.kernel.begin(), w.kernel.end());
  std::vector<float> ones(static_cast<size_t>(channels * taps * taps), 0.f);
  for (int64_t k = 0; k < channels * taps; ++k) ones[static_cast<size_t>(k * taps + k % taps)] = 1;
  l.top(windowed(l, "Conv", 0, channels, {l.floats(dims, ones)}));
}

void innerProduct(OnnxLayer& l) {
  const auto& p = l.param().inner_product_param();
  const int64_t axis = l.in().canonicalAxis(p.axis());
  const bool flat = l.in().axes() == 2 && axis == 1;
  std::vector<Value> inputs = {flat ? l.bottom() : l.node("Flatten", {l.bottom()}, {{"axis", axis}}), l.weight(0)};
  if (p.bias_term()) inputs.push_back(l.weight(1));
  const Value y = l.node("Gemm", inputs, {{"transB", int64_t{p.transpose() ? 0 : 1}}});
  l.top(l.out().axes() == 2 ? y : l.shapedAs(l.out(), y));
}

// Index -1 means no word: it selects a row of zeros appended to the table, as ONNX counts -1 from the end.
void embed(OnnxLayer& l) {
  const Shape& table = l.blob(0).shape();
  const Value zeros = l.floats({1, table[1]}, std::vector<float>(static_cast<size_t>(table[1]), 0.f));
  const Value rows = l.node("Concat", {l.weight(0), zeros}, {{"axis", int64_t{0}}});
  const Value index = l.node("Cast", {l.bottom()}, {{"to", int64_t{::onnx::TensorProto::INT64}}});
  const Value y = l.node("Gather", {rows, index}, {{"axis", int64_t{0}}});
  l.top(l.params() > 1 ? l.node("Add", {y, l.weight(1)}) : y);
}

}  // namespace

void addOnnxWeighted(OnnxConversions& all) {
  all.insert({{"Convolution", convolution},
              {"Deconvolution", convolution},
              {"Embed", embed},
              {"Im2col", im2col},
              {"InnerProduct", innerProduct}});
}

}  // namespace crema::exchange
