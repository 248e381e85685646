// Conv, ConvTranspose, Pad, Gemm, MatMul and Gather of a table. Caffe pads both sides alike. Where ONNX does not, the
// kernel gets zeros on the side of the smaller pad, and both pads become the larger one, which gives the same sums.
#include <algorithm>

#include "exchange/import_dims.h"
#include "exchange/import_windows.h"

namespace crema::exchange {

ImportWindow windowOf(const ImportNode& n, const Dims& kernel, const Dims& spatial) {
  ImportWindow w;
  const size_t axes = kernel.size();
  w.kernel = kernel;
  w.stride = n.list("strides", Dims(axes, 1)), w.dilation = n.list("dilations", Dims(axes, 1));
  Dims pads = n.list("pads", Dims(2 * axes, 0));
  if (w.stride.size() != axes || w.dilation.size() != axes || pads.size() != 2 * axes || spatial.size() != axes)
    badData("{}: strides, dilations or pads are not for {} spatial axes", n.label(), axes);
  for (const Dims* list : {&w.kernel, &w.stride, &w.dilation})
    for (const int64_t v : *list)
      if (v < 1 || v > (1 << 24)) badData("{}: a kernel, stride or dilation of {}", n.label(), v);
  for (const int64_t v : pads)
    if (v < 0 || v > (1 << 24)) n.refuse("a pad of {}", v);
  w.begin.assign(pads.begin(), pads.begin() + static_cast<ptrdiff_t>(axes));
  w.end.assign(pads.begin() + static_cast<ptrdiff_t>(axes), pads.end());
  const std::string mode = n.s("auto_pad", "NOTSET");
  if (mode == "NOTSET" || mode.empty()) return w;
  if (mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER") badData("{}: auto_pad is '{}'", n.label(), mode);
  for (size_t a = 0; a < axes; ++a) {
    const int64_t outputs = (spatial[a] + w.stride[a] - 1) / w.stride[a];
    const int64_t all =
        mode == "VALID" ? 0 : std::max<int64_t>(0, (outputs - 1) * w.stride[a] + w.extent(a) - spatial[a]);
    w.begin[a] = mode == "SAME_LOWER" ? all - all / 2 : all / 2, w.end[a] = all - w.begin[a];
  }
  return w;
}

namespace {

constexpr int64_t kMostGrown = 64;

// `front`: by spatial axis: taps to add in front, or behind when negative.
std::vector<float> grown(const std::vector<float>& values, Dims& dims, const Dims& front) {
  std::vector<float> now = values;
  for (size_t a = 0; a < front.size(); ++a) {
    const size_t axis = a + 2, more = static_cast<size_t>(std::abs(front[a])), old = static_cast<size_t>(dims[axis]);
    if (more == 0) continue;
    size_t behind = 1;
    for (size_t b = axis + 1; b < dims.size(); ++b) behind *= static_cast<size_t>(dims[b]);
    std::vector<float> next;
    for (auto row = now.begin(); row != now.end(); row += static_cast<ptrdiff_t>(old * behind)) {
      if (front[a] > 0) next.insert(next.end(), more * behind, 0.f);
      next.insert(next.end(), row, row + static_cast<ptrdiff_t>(old * behind));
      if (front[a] < 0) next.insert(next.end(), more * behind, 0.f);
    }
    now = std::move(next);
    dims[axis] += static_cast<int64_t>(more);
  }
  return now;
}

// Weights and window of a Convolution or a Deconvolution. A Deconvolution's pads are cut from its result.
void setWindow(ImportNode& n, caffe::LayerParameter& l, ImportWindow w, Dims dims, const std::vector<float>& values) {
  Dims front(w.axes());
  auto* p = l.mutable_convolution_param();
  for (size_t a = 0; a < w.axes(); ++a) {
    const int64_t difference = w.end[a] - w.begin[a];
    if (difference % w.dilation[a])
      n.refuse("pads {} and {} differ on axis {} by no multiple of its dilation {}; Caffe pads both sides alike",
               w.begin[a], w.end[a], a + 2, w.dilation[a]);
    front[a] = difference / w.dilation[a];
    if (std::abs(front[a]) > kMostGrown)
      n.refuse("pads {} and {} differ by more than {}", w.begin[a], w.end[a], kMostGrown);
    p->add_pad(static_cast<uint32_t>(std::max(w.begin[a], w.end[a])));
    p->add_stride(static_cast<uint32_t>(w.stride[a]));
    if (w.dilation[a] != 1) p->mutable_dilation()->Resize(static_cast<int>(w.axes()), 1);
  }
  for (int a = 0; a < p->dilation_size(); ++a)
    p->set_dilation(a, static_cast<uint32_t>(w.dilation[static_cast<size_t>(a)]));
  const auto all = grown(values, dims, front);
  for (size_t a = 0; a < w.axes(); ++a) p->add_kernel_size(static_cast<uint32_t>(dims[a + 2]));
  n.weights(l, dims, all);
}

Dims spatialOf(const Dims& in) {
  return {in.begin() + std::min<ptrdiff_t>(2, static_cast<ptrdiff_t>(in.size())), in.end()};
}

void convolution(ImportNode& n) {
  const bool back = n.op() == "ConvTranspose";
  const Dims in = n.in(), dims = dimsOf(n.tensor(1));
  const int64_t group = n.i("group", 1);
  if (dims.size() < 3 || dims.size() != in.size())
    badData("{}: weights of {} on {}", n.label(), textOf(dims), textOf(in));
  if (group < 1 || dims[0] % group || dims[0] == 0)
    badData("{}: {} groups, weights of {}", n.label(), group, textOf(dims));
  if (const Dims said = n.list("kernel_shape", spatialOf(dims)); said != spatialOf(dims))
    badData("{}: kernel_shape is {}, its weights are {}", n.label(), textOf(said), textOf(dims));
  ImportWindow w = windowOf(n, spatialOf(dims), spatialOf(in));
  if (back) {
    if (n.attribute("output_shape") || n.s("auto_pad", "NOTSET") != "NOTSET")
      n.refuse("its pads follow from output_shape or auto_pad; export it with pads");
    const Dims more = n.list("output_padding", Dims(w.axes(), 0));
    for (size_t a = 0; a < w.axes() && a < more.size(); ++a) {
      if (more[a] < 0 || more[a] > (1 << 16)) badData("{}: an output_padding of {}", n.label(), more[a]);
      w.end[a] -= more[a];
      if (w.end[a] < 0)
        n.refuse("output_padding {} is larger than the pad behind; Deconvolution cannot add rows", more[a]);
    }
  }
  auto l = n.layer(back ? "Deconvolution" : "Convolution", {n.blob()});
  auto* p = l.mutable_convolution_param();
  p->set_num_output(static_cast<uint32_t>(back ? dims[1] * group : dims[0]));
  if (group != 1) p->set_group(static_cast<uint32_t>(group));
  p->set_bias_term(n.has(2));
  setWindow(n, l, w, dims, n.floats(1));
  if (n.has(2)) n.weights(l, dimsOf(n.tensor(2)), n.floats(2));
  n.result(std::move(l));
}

// Pads planes with zeros: a convolution per channel with the 1x1 kernel 1.
void pad(ImportNode& n) {
  const Dims in = n.in();
  const auto pads = n.listOrInput("pads", 1);
  const float value = n.has(2) ? n.number(2) : n.f("value", 0);
  if (std::all_of(pads.begin(), pads.end(), [](int64_t v) { return v == 0; })) return n.alias(n.blob());
  if (n.has(3)) n.refuse("it names axes; export it with pads for all");
  if (n.s("mode", "constant") != "constant" || value != 0)
    n.refuse("Caffe pads with zeros only; its mode or value is another");
  if (in.size() < 3 || pads.size() != 2 * in.size()) n.refuse("it pads {}; planes alone can be padded", textOf(in));
  ImportWindow w;
  const size_t axes = in.size() - 2, all = in.size();
  for (const size_t a : {size_t{0}, size_t{1}})
    if (pads[a] || pads[all + a]) n.refuse("it pads axis {}; planes alone can be padded", a);
  w.kernel = w.stride = w.dilation = Dims(axes, 1);
  for (size_t a = 2; a < all; ++a) w.begin.push_back(pads[a]), w.end.push_back(pads[all + a]);
  for (const Dims* side : {&w.begin, &w.end})
    for (const int64_t v : *side)
      if (v < 0 || v > (1 << 16)) n.refuse("it cuts by a pad of {}; use Slice", v);
  auto l = n.layer("Convolution", {n.blob()});
  auto* p = l.mutable_convolution_param();
  p->set_num_output(static_cast<uint32_t>(in[1])), p->set_group(static_cast<uint32_t>(in[1])), p->set_bias_term(false);
  Dims dims(all, 1);
  dims[0] = in[1];
  setWindow(n, l, w, dims, std::vector<float>(static_cast<size_t>(in[1]), 1.f));
  l.add_param()->set_lr_mult(0);
  n.result(std::move(l));
}

// y = alpha A B + beta C, with A from the net and B, C constants, or C from the net.
void gemm(ImportNode& n) {
  Dims in = n.in();
  const Dims dims = dimsOf(n.tensor(1));
  if (n.graph().flattened.count(n.proto().input(0))) in = {in[0], countOf(Dims(in.begin() + 1, in.end()))};
  if (n.i("transA", 0)) n.refuse("transA turns what the net computes; Caffe has no layer for that");
  if (in.size() != 2 || dims.size() != 2) badData("{}: {} times {}", n.label(), textOf(in), textOf(dims));
  const bool turned = n.i("transB", 0);
  const int64_t outputs = dims[turned ? 0 : 1];
  const float alpha = n.f("alpha", 1), beta = n.f("beta", 1);
  auto values = n.floats(1);
  if (alpha != 1)
    for (float& v : values) v *= alpha;
  auto l = n.layer("InnerProduct", {n.blob()});
  auto* p = l.mutable_inner_product_param();
  p->set_num_output(static_cast<uint32_t>(outputs));
  if (!turned) p->set_transpose(true);
  n.weights(l, dims, values);
  const bool added = n.has(2) && !n.constant(2);
  p->set_bias_term(n.has(2) && !added);
  if (p->bias_term()) {
    auto bias = n.floats(2);
    if (const Dims row = alignedDims(n, dimsOf(n.tensor(2)), {in[0], outputs}); row[0] != 1)
      n.refuse("its C is {}; a bias is a row", textOf(dimsOf(n.tensor(2))));
    if (bias.size() == 1) bias.resize(static_cast<size_t>(outputs), bias[0]);
    for (float& v : bias) v *= beta;
    n.weights(l, {outputs}, bias);
  }
  if (!added) return n.result(std::move(l));
  const std::string y = n.make(std::move(l)), c = n.blob(2);
  if (beta != 1 || n.shape(c) != n.shape(y))
    n.refuse("its C comes from the net and is spread or scaled; Add it behind");
  n.result(n.layer("Eltwise", {y, c}));
}

// x W, and the bias of an Add that follows.
void matMul(ImportNode& n) {
  const Dims in = n.in(), dims = dimsOf(n.tensor(1));
  if (dims.size() != 2 || in.size() < 2)
    n.refuse("{} times {}; InnerProduct multiplies with one matrix", textOf(in), textOf(dims));
  auto l = n.layer("InnerProduct", {n.blob()});
  auto* p = l.mutable_inner_product_param();
  p->set_num_output(static_cast<uint32_t>(dims[1])), p->set_transpose(true), p->set_bias_term(false);
  if (in.size() != 2) p->set_axis(static_cast<int>(in.size()) - 1);
  n.weights(l, dims, n.floats(1));
  n.result(std::move(l));
}

// Rows of a table; indices are below its length, and from its end where they are negative in ONNX, not in Caffe.
void gather(ImportNode& n) {
  if (!n.constant(0)) n.refuse("it chooses by constants of what the net computes; Slice can cut ranges");
  const Dims dims = dimsOf(n.tensor(0));
  if (dims.size() != 2 || n.i("axis", 0) != 0) n.refuse("its table is {}; Embed takes rows of a matrix", textOf(dims));
  auto l = n.layer("Embed", {n.blob(1)});
  auto* p = l.mutable_embed_param();
  p->set_input_dim(static_cast<uint32_t>(dims[0])), p->set_num_output(static_cast<uint32_t>(dims[1])),
      p->set_bias_term(false);
  n.weights(l, dims, n.floats(0));
  n.result(std::move(l));
}

}  // namespace

void addImportWeighted(ImportConversions& all) {
  all.insert({{"Conv", convolution},
              {"ConvTranspose", convolution},
              {"Gather", gather},
              {"Gemm", gemm},
              {"MatMul", matMul},
              {"Pad", pad}});
}

}  // namespace crema::exchange
