// Export of layers that compute element by element, and Eltwise.
#include <cmath>

#include "exchange/graph.h"

namespace crema::exchange {
namespace {

void relu(OnnxLayer& l) {
  const float slope = l.param().relu_param().negative_slope();
  l.top(slope == 0 ? l.node("Relu", {l.bottom()}) : l.node("LeakyRelu", {l.bottom()}, {{"alpha", slope}}));
}

void prelu(OnnxLayer& l) {
  std::vector<int64_t> dims(static_cast<size_t>(l.in().axes()) - 1, 1);
  dims[0] = l.blob(0).count();
  l.top(l.node("PRelu", {l.bottom(), l.weight(0, dims)}));
}

void elu(OnnxLayer& l) { l.top(l.node("Elu", {l.bottom()}, {{"alpha", l.param().elu_param().alpha()}})); }
void sigmoid(OnnxLayer& l) { l.top(l.node("Sigmoid", {l.bottom()})); }
void tanh(OnnxLayer& l) { l.top(l.node("Tanh", {l.bottom()})); }
void absVal(OnnxLayer& l) { l.top(l.node("Abs", {l.bottom()})); }
void bnll(OnnxLayer& l) { l.top(l.node("Softplus", {l.bottom()})); }

Value linear(OnnxLayer& l, double scale, double shift) {
  Value v = l.bottom();
  if (scale != 1) v = l.node("Mul", {v, l.number(scale)});
  return shift != 0 ? l.node("Add", {v, l.number(shift)}) : v;
}

// With power or scale 0 the top is a constant even where the bottom is NaN; only the bottom's shape is used.
void power(OnnxLayer& l) {
  const auto& p = l.param().power_param();
  if (p.power() * p.scale() == 0) {
    const double constant = p.power() == 0 ? 1 : std::pow(double{p.shift()}, double{p.power()});
    return l.top(l.node("Expand", {l.number(constant), l.node("Shape", {l.bottom()})}));
  }
  const Value v = linear(l, p.scale(), p.shift());
  l.top(p.power() == 1 ? v : p.power() == 2 ? l.node("Mul", {v, v}) : l.node("Pow", {v, l.number(p.power())}));
}

void exp(OnnxLayer& l) {
  const auto& p = l.param().exp_param();
  const double log = p.base() == -1 ? 1 : std::log(double{p.base()});
  l.top(l.node("Exp", {linear(l, log * p.scale(), log * p.shift())}));
}

void log(OnnxLayer& l) {
  const auto& p = l.param().log_param();
  const Value v = l.node("Log", {linear(l, p.scale(), p.shift())});
  l.top(p.base() == -1 ? v : l.node("Mul", {v, l.number(1 / std::log(double{p.base()}))}));
}

void clip(OnnxLayer& l) {
  const auto& p = l.param().clip_param();
  l.top(l.node("Clip", {l.bottom(), l.number(p.min()), l.number(p.max())}));
}

void swish(OnnxLayer& l) {
  const float beta = l.param().swish_param().beta();
  const Value v = beta == 1 ? l.bottom() : l.node("Mul", {l.bottom(), l.number(beta)});
  l.top(l.node("Mul", {l.bottom(), l.node("Sigmoid", {v})}));
}

void threshold(OnnxLayer& l) {
  const Value above = l.node("Greater", {l.bottom(), l.number(l.param().threshold_param().threshold())});
  l.top(l.node("Cast", {above}, {{"to", int64_t{::onnx::TensorProto::FLOAT}}}));
}

void eltwise(OnnxLayer& l) {
  const auto& p = l.param().eltwise_param();
  std::vector<Value> parts;
  for (size_t i = 0; i < l.bottoms(); ++i) {
    const bool scaled = p.operation() == caffe::EltwiseParameter::SUM && p.coeff_size();
    const float c = scaled ? p.coeff(static_cast<int>(i)) : 1;
    parts.push_back(c == 1 ? l.bottom(i) : l.node("Mul", {l.bottom(i), l.number(c)}));
  }
  if (p.operation() == caffe::EltwiseParameter::MAX) return l.top(l.node("Max", parts));
  const char* op = p.operation() == caffe::EltwiseParameter::PROD ? "Mul" : "Add";
  Value all = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) all = l.node(op, {all, parts[i]});
  l.top(all);
}

void dropout(OnnxLayer& l) {
  if (l.param().phase() == caffe::TRAIN) l.refuse("its phase is TRAIN, where it draws random numbers; remove `phase`");
  l.top(l.bottom());
}

}  // namespace

void addOnnxActivations(OnnxConversions& all) {
  all.insert({{"AbsVal", absVal},
              {"BNLL", bnll},
              {"Clip", clip},
              {"Dropout", dropout},
              {"Eltwise", eltwise},
              {"ELU", elu},
              {"Exp", exp},
              {"Log", log},
              {"Power", power},
              {"PReLU", prelu},
              {"ReLU", relu},
              {"Sigmoid", sigmoid},
              {"Swish", swish},
              {"TanH", tanh},
              {"Threshold", threshold}});
}

}  // namespace crema::exchange
