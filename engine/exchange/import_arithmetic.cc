// Add, Sub, Mul, Div, Sum, Max of blobs and constants. A single constant becomes a Power, constants along some axes a
// Scale or a Bias, blobs of equal shape an Eltwise; a blob that is broadcast becomes the second bottom of a Scale or
// Bias.
#include <algorithm>

#include "exchange/import_dims.h"

namespace crema::exchange {
namespace {

// The axes [from, to) of `in` along which a constant varies; outside of them its dims are 1.
struct Span {
  size_t from = 0, to = 0;
};

Span spanOf(const Dims& small) {
  Span s;
  s.to = small.size();
  while (s.to > 0 && small[s.to - 1] == 1) --s.to;
  while (s.from < s.to && small[s.from] == 1) ++s.from;
  return s;
}

constexpr int64_t kMostMultiplied = 1 << 26;

// The values of a span, repeated along axes inside of it whose dim is 1.
std::vector<float> spread(const std::vector<float>& values, const Dims& small, const Dims& in, Span s) {
  if (countOf(Dims(in.begin() + static_cast<ptrdiff_t>(s.from), in.begin() + static_cast<ptrdiff_t>(s.to))) >
      kMostMultiplied)
    invalid("constants of {} would be spread to {}", textOf(small), textOf(in));
  std::vector<float> all = values;
  size_t behind = 1;
  for (size_t a = s.to; a-- > s.from;) {
    const auto times = static_cast<size_t>(small[a] == in[a] ? 1 : in[a]);
    if (times > 1) {
      std::vector<float> more;
      for (size_t i = 0; i < all.size(); i += behind)
        for (size_t t = 0; t < times; ++t)
          more.insert(more.end(), all.begin() + static_cast<ptrdiff_t>(i),
                      all.begin() + static_cast<ptrdiff_t>(i + behind));
      all = std::move(more);
    }
    behind *= static_cast<size_t>(in[a]);
  }
  return all;
}

caffe::LayerParameter along(ImportNode& n, bool times, const std::vector<std::string>& bottoms, Span s, bool given) {
  auto l = n.layer(times ? "Scale" : "Bias", bottoms);
  const auto axis = static_cast<int>(s.from), axes = static_cast<int>(s.to - s.from);
  if (times) {
    l.mutable_scale_param()->set_axis(axis);
    if (!given) l.mutable_scale_param()->set_num_axes(axes);
  } else {
    l.mutable_bias_param()->set_axis(axis);
    if (!given) l.mutable_bias_param()->set_num_axes(axes);
  }
  return l;
}

caffe::LayerParameter power(ImportNode& n, const std::string& x, float scale, float shift) {
  auto l = n.layer("Power", {x});
  if (scale != 1) l.mutable_power_param()->set_scale(scale);
  if (shift != 0) l.mutable_power_param()->set_shift(shift);
  return l;
}

// x with constants c: x + c, x - c, c - x, x c, x / c; c / x is c times 1 / x.
void withConstant(ImportNode& n, int at) {
  const std::string& op = n.op();
  std::string x = n.blob(1 - at);
  auto c = n.floats(at);
  const Dims in = n.shape(x), small = alignedDims(n, dimsOf(n.tensor(at)), in);
  const bool times = op == "Mul" || op == "Div", first = at == 0;
  if (op == "Div" && first) {
    auto l = n.layer("Power", {x});
    l.mutable_power_param()->set_power(-1);
    x = n.make(std::move(l));
  }
  if (op == "Sub" && first) x = n.make(power(n, x, -1, 0));
  if (op == "Sub" && !first)
    for (float& v : c) v = -v;
  if (op == "Div" && !first)
    for (float& v : c) v = 1 / v;
  if (c.size() == 1) return n.result(times ? power(n, x, c[0], 0) : power(n, x, 1, c[0]));
  const Span s = spanOf(small);
  auto l = along(n, times, {x}, s, false);
  n.weights(l, Dims(in.begin() + static_cast<ptrdiff_t>(s.from), in.begin() + static_cast<ptrdiff_t>(s.to)),
            spread(c, small, in, s));
  n.result(std::move(l));
}

void eltwise(ImportNode& n, const std::vector<std::string>& blobs, caffe::EltwiseParameter::EltwiseOp op,
             bool minus = false) {
  auto l = n.layer("Eltwise", blobs);
  l.mutable_eltwise_param()->set_operation(op);
  if (minus) l.mutable_eltwise_param()->add_coeff(1), l.mutable_eltwise_param()->add_coeff(-1);
  n.result(std::move(l));
}

std::string inverse(ImportNode& n, const std::string& x) {
  auto l = n.layer("Power", {x});
  l.mutable_power_param()->set_power(-1);
  return n.make(std::move(l));
}

void binary(ImportNode& n) {
  if (const auto* b = n.attribute("broadcast"); b && b->i())
    n.refuse("it spreads by the attribute `broadcast` of opset 6; convert the model to opset 17 first");
  if (n.op() == "Div") n.refuseWhole();
  if (n.constant(0)) return withConstant(n, 0);
  if (n.constant(1)) return withConstant(n, 1);
  const bool times = n.op() == "Mul" || n.op() == "Div";
  std::string a = n.blob(0), b = n.blob(1);
  if (n.op() == "Div") b = inverse(n, b);
  if (n.shape(a) == n.shape(b))
    return eltwise(n, {a, b}, times ? caffe::EltwiseParameter::PROD : caffe::EltwiseParameter::SUM, n.op() == "Sub");
  if (n.op() == "Sub") b = n.make(power(n, b, -1, 0));
  if (countOf(n.shape(a)) < countOf(n.shape(b))) std::swap(a, b);
  const Dims in = n.shape(a), small = alignedDims(n, n.shape(b), in);
  const Span s = spanOf(small);
  for (size_t k = s.from; k < s.to; ++k)
    if (small[k] != in[k]) n.refuse("{} is spread over inner axes of {}; Tile it first", textOf(small), textOf(in));
  const Dims part(small.begin() + static_cast<ptrdiff_t>(s.from), small.begin() + static_cast<ptrdiff_t>(s.to));
  if (n.shape(b) != part) b = n.reshaped(b, part);
  n.result(along(n, times, {a, b}, s, true));
}

void several(ImportNode& n) {
  std::vector<std::string> blobs;
  for (int i = 0; i < n.inputs(); ++i) blobs.push_back(n.blob(i));
  if (blobs.size() == 1) return n.alias(blobs[0]);
  eltwise(n, blobs, n.op() == "Max" ? caffe::EltwiseParameter::MAX : caffe::EltwiseParameter::SUM);
}

}  // namespace

void addImportArithmetic(ImportConversions& all) {
  all.insert({{"Add", binary}, {"Div", binary}, {"Max", several}, {"Mul", binary}, {"Sub", binary}, {"Sum", several}});
}

}  // namespace crema::exchange
