// BatchNormalization, LRN, Softmax.
#include <algorithm>

#include "exchange/import_graph.h"

namespace crema::exchange {
namespace {

// (x - mean) / sqrt(variance + eps) by BatchNorm with a count of 1, then Scale with a bias.
void batchNormalization(ImportNode& n) {
  const auto& outputs = n.proto().output();
  const bool trains = std::any_of(outputs.begin() + 1, outputs.end(), [](const auto& o) { return !o.empty(); });
  if (trains || n.i("training_mode", 0) || !n.i("is_test", n.graph().opset >= 7))
    n.refuse("it is in training mode; export the model with model.eval()");
  if (!n.i("spatial", 1)) n.refuse("spatial is 0: statistics for each place; BatchNorm has them for each channel");
  const Dims in = n.in();
  if (in.empty()) badData("{}: a scalar", n.label());
  const int64_t channels = in.size() > 1 ? in[1] : 1;
  auto norm = n.layer("BatchNorm", {n.blob()});
  norm.mutable_batch_norm_param()->set_use_global_stats(true);
  norm.mutable_batch_norm_param()->set_eps(n.f("epsilon", 1e-5f));
  n.weights(norm, {channels}, n.floats(3));
  n.weights(norm, {channels}, n.floats(4));
  n.weights(norm, {1}, {1});
  auto scale = n.layer("Scale", {n.make(std::move(norm))});
  scale.mutable_scale_param()->set_bias_term(true);
  n.weights(scale, {channels}, n.floats(1));
  n.weights(scale, {channels}, n.floats(2));
  n.result(std::move(scale));
}

void lrn(ImportNode& n) {
  auto l = n.layer("LRN", {n.blob()});
  auto* p = l.mutable_lrn_param();
  const int64_t size = n.i("size", 0);
  if (size % 2 == 0) n.refuse("its size is {}; Caffe's LRN has an odd one", size);
  p->set_local_size(static_cast<uint32_t>(size)), p->set_alpha(n.f("alpha", 1e-4f)), p->set_beta(n.f("beta", 0.75f));
  if (n.f("bias", 1) != 1) p->set_k(n.f("bias", 1));
  n.result(std::move(l));
}

// Before opset 13 over all axes from `axis` (default 1) on; later over one axis (default: the last).
caffe::LayerParameter softmaxOf(ImportNode& n) {
  const Dims in = n.in();
  const bool one = n.graph().opset >= 13;
  const int64_t axis = n.axis(n.i("axis", one ? -1 : 1), in.size());
  auto l = n.layer("Softmax", {n.blob()});
  if (!one && countOf(Dims(in.begin() + axis + 1, in.end())) != 1) {
    const int64_t rows = countOf(Dims(in.begin(), in.begin() + axis));
    l.set_bottom(0, n.reshaped(n.blob(), {rows, countOf(in) / std::max<int64_t>(1, rows)}));
  } else if (axis != 1) {
    l.mutable_softmax_param()->set_axis(static_cast<int>(axis));
  }
  return l;
}
void softmax(ImportNode& n) {
  const bool log = n.op() == "LogSoftmax";
  if (log) n.note("LogSoftmax is the logarithm of a Softmax: below -87 it is -inf");
  auto l = softmaxOf(n);
  const bool flat = l.bottom(0) != n.blob();
  if (!log && !flat) return n.result(std::move(l));
  std::string y = n.make(std::move(l));
  if (log && !flat) return n.result(n.layer("Log", {y}));
  if (log) y = n.make(n.layer("Log", {y}));
  n.reshaped(y, n.in(), true);
}

void instanceNormalization(ImportNode& n) {
  n.refuse("Caffe's MVN adds eps to the deviation, not to the variance; fold it into the layers around it");
}

}  // namespace

void addImportNormalisations(ImportConversions& all) {
  all.insert({{"BatchNormalization", batchNormalization},
              {"InstanceNormalization", instanceNormalization},
              {"LRN", lrn},
              {"LogSoftmax", softmax},
              {"Softmax", softmax}});
}

}  // namespace crema::exchange
