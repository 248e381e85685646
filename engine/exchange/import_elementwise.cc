// Import of nodes that compute element by element.
#include <algorithm>
#include <cmath>

#include "exchange/import_dims.h"

namespace crema::exchange {
namespace {

template <const char* kType>
void same(ImportNode& n) {
  n.result(n.layer(kType, {n.blob()}));
}
constexpr char kRelu[] = "ReLU", kSigmoid[] = "Sigmoid", kTanh[] = "TanH", kAbs[] = "AbsVal", kSoftplus[] = "BNLL",
               kExp[] = "Exp", kLog[] = "Log";

void leakyRelu(ImportNode& n) {
  auto l = n.layer("ReLU", {n.blob()});
  l.mutable_relu_param()->set_negative_slope(n.f("alpha", 0.01f));
  n.result(std::move(l));
}

void elu(ImportNode& n) {
  auto l = n.layer("ELU", {n.blob()});
  l.mutable_elu_param()->set_alpha(n.f("alpha", 1));
  n.result(std::move(l));
}

// One slope, or one for each channel: a list before opset 7, later a tensor that broadcasts along axis 1 only.
void prelu(ImportNode& n) {
  const auto slopes = n.floats(1);
  const Dims in = n.in();
  const bool list = n.graph().opset < 7 && dimsOf(n.tensor(1)).size() == 1;
  const Dims small = list ? Dims{1, static_cast<int64_t>(slopes.size())} : alignedDims(n, dimsOf(n.tensor(1)), in);
  auto l = n.layer("PReLU", {n.blob()});
  const auto count = static_cast<int64_t>(slopes.size());
  if (in.size() < 2 || (count != 1 && (count != in[1] || small[1] != count)))
    n.refuse("its slopes are {} for {}, and PReLU has one, or one for each channel: {}x1x1",
             textOf(dimsOf(n.tensor(1))), textOf(in), in.size() < 2 ? 1 : in[1]);
  l.mutable_prelu_param()->set_channel_shared(count == 1 && in[1] != 1);
  n.weights(l, l.prelu_param().channel_shared() ? Dims{} : Dims{count}, slopes);
  n.result(std::move(l));
}

caffe::LayerParameter clipped(ImportNode& n, const std::string& x, float low, float high) {
  auto l = n.layer("Clip", {x});
  l.mutable_clip_param()->set_min(low), l.mutable_clip_param()->set_max(high);
  return l;
}

void clip(ImportNode& n) {
  const float most = 3.402823466e+38f;
  const float low = n.has(1) ? n.number(1) : n.f("min", -most), high = n.has(2) ? n.number(2) : n.f("max", most);
  if (low == 0 && high >= most) return n.result(n.layer("ReLU", {n.blob()}));
  n.result(clipped(n, n.blob(), std::max(low, -most), std::min(high, most)));
}

caffe::LayerParameter power(ImportNode& n, const std::string& x, float power, float scale, float shift) {
  auto l = n.layer("Power", {x});
  auto* p = l.mutable_power_param();
  if (power != 1) p->set_power(power);
  if (scale != 1) p->set_scale(scale);
  if (shift != 0) p->set_shift(shift);
  return l;
}
void neg(ImportNode& n) { n.result(power(n, n.blob(), 1, -1, 0)); }
void sqrt(ImportNode& n) { n.result(power(n, n.blob(), 0.5f, 1, 0)); }
void reciprocal(ImportNode& n) { n.result(power(n, n.blob(), -1, 1, 0)); }

// The value of a constant with a single element.
float only(ImportNode& n, const char* layer) {
  const auto values = n.floats(1);
  alignedDims(n, dimsOf(n.tensor(1)), n.in());
  if (values.size() != 1) n.refuse("its input 1 has {} values, and {} one number", values.size(), layer);
  return values[0];
}

void pow(ImportNode& n) {
  n.refuseWhole();
  n.result(power(n, n.blob(), only(n, "Power raises to"), 1, 0));
}

// max(0, min(1, alpha x + beta)), and x times that.
std::string gate(ImportNode& n, float alpha, float beta, bool last) {
  auto l = clipped(n, n.make(power(n, n.blob(), 1, alpha, beta)), 0, 1);
  return last ? (n.result(std::move(l)), "") : n.make(std::move(l));
}
void hardSigmoid(ImportNode& n) { gate(n, n.f("alpha", 0.2f), n.f("beta", 0.5f), true); }
void hardSwish(ImportNode& n) {
  auto l = n.layer("Eltwise", {n.blob(), gate(n, 1.f / 6, 0.5f, false)});
  l.mutable_eltwise_param()->set_operation(caffe::EltwiseParameter::PROD);
  n.result(std::move(l));
}

// Whether a cast changes no value. Blobs are floats, so INT32 and INT64 are alike, and BOOL is 0 and 1 already, as
// Threshold makes it.
bool keepsValues(int from, int to) {
  using Type = ::onnx::TensorProto;
  if (to == Type::FLOAT || to == Type::DOUBLE || to == Type::FLOAT16 || from == to || from == Type::BOOL) return true;
  return isInteger(from) && (to == Type::INT64 || to == Type::INT32);
}

// A cast to FLOAT16 is dropped: imports compute float16 in float32 everywhere.
void cast(ImportNode& n) {
  const auto to = static_cast<int>(n.i("to", 0));
  if (!keepsValues(n.type(), to))
    n.refuse("it makes {} of {}, which rounds or cuts values, and no layer does", typeName(to), typeName(n.type()));
  if (to == ::onnx::TensorProto::FLOAT16)
    n.note("float16 is computed in float32: what the model rounds on the way is not rounded");
  n.alias(n.blob());
}

void greater(ImportNode& n) {
  auto l = n.layer("Threshold", {n.blob()});
  l.mutable_threshold_param()->set_threshold(only(n, "Threshold compares with"));
  n.result(std::move(l));
}

void dropout(ImportNode& n) {
  if ((n.has(2) && n.number(2) != 0) || !n.i("is_test", n.graph().opset >= 7))
    n.refuse("it is in training mode; export the model with model.eval()");
  if (n.proto().output_size() > 1 && n.graph().readers(n.proto().output(1)))
    n.refuse("its mask is read, and Caffe's Dropout has none; cut the model before it");
  auto l = n.layer("Dropout", {n.blob()});
  const float ratio = n.has(1) ? n.number(1) : n.f("ratio", 0.5f);
  if (!(ratio > 0 && ratio < 1)) return n.alias(n.blob());
  l.mutable_dropout_param()->set_dropout_ratio(ratio);
  n.result(std::move(l));
}

void identity(ImportNode& n) { n.alias(n.blob()); }

}  // namespace

void addImportElementwise(ImportConversions& all) {
  all.insert({{"Abs", same<kAbs>},
              {"Cast", cast},
              {"Clip", clip},
              {"Dropout", dropout},
              {"Elu", elu},
              {"Exp", same<kExp>},
              {"Greater", greater},
              {"HardSigmoid", hardSigmoid},
              {"HardSwish", hardSwish},
              {"Identity", identity},
              {"LeakyRelu", leakyRelu},
              {"Log", same<kLog>},
              {"Neg", neg},
              {"Pow", pow},
              {"PRelu", prelu},
              {"Reciprocal", reciprocal},
              {"Relu", same<kRelu>},
              {"Sigmoid", same<kSigmoid>},
              {"Softplus", same<kSoftplus>},
              {"Sqrt", sqrt},
              {"Tanh", same<kTanh>}});
}

}  // namespace crema::exchange
