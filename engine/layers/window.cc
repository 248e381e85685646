#include "layers/window.h"

#include <fmt/ranges.h>

#include <numeric>

#include "base/error.h"

namespace crema::layers {
namespace {

using Field = google::protobuf::RepeatedField<uint32_t>;

// name: the field for all axes; stem: what _h and _w follow in the fields for one.
std::vector<int> read(const char* name, const char* stem, const Field& values, bool hasH, uint32_t h, bool hasW,
                      uint32_t w, int axes, int fallback, int least) {
  std::vector<int> out;
  const bool sides = hasH || hasW;
  if (sides) {
    if (axes != 2) invalid("{}_h and {}_w need two spatial axes, here are {}", stem, stem, axes);
    if (!values.empty()) invalid("give either {} or {}_h and {}_w, not both", name, stem, stem);
    out = {static_cast<int>(h), static_cast<int>(w)};
  } else {
    if (values.size() > 1 && values.size() != axes)
      invalid("{} is given {} times; give it once, or once for each of the {} spatial axes", name, values.size(), axes);
    if (axes && values.empty() && fallback < 0) invalid("{} must be given", name);
    for (int i = 0; i < axes; ++i)
      out.push_back(values.empty() ? fallback : static_cast<int>(values.Get(values.size() == 1 ? 0 : i)));
  }
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i] < least || out[i] > kLongestWindow)
      invalid("{} must be {} to {}, not {}", sides ? std::string(stem) + (i == 0 ? "_h" : "_w") : name, least,
              kLongestWindow, static_cast<uint32_t>(out[i]));
  return out;
}

std::string joined(const std::vector<int>& v) { return fmt::format("{}", fmt::join(v, "x")); }

// Advances a multi-index, the last axis fastest.
void next(std::vector<int>& at, const std::vector<int>& sizes) {
  for (size_t i = at.size(); i-- > 0;) {
    if (++at[i] < sizes[i]) return;
    at[i] = 0;
  }
}

}  // namespace

ConvolutionWindow readConvolutionWindow(const caffe::ConvolutionParameter& p, int axes) {
  ConvolutionWindow w;
  w.kernel = read("kernel_size", "kernel", p.kernel_size(), p.has_kernel_h(), p.kernel_h(), p.has_kernel_w(),
                  p.kernel_w(), axes, -1, 1);
  w.stride =
      read("stride", "stride", p.stride(), p.has_stride_h(), p.stride_h(), p.has_stride_w(), p.stride_w(), axes, 1, 1);
  w.pad = read("pad", "pad", p.pad(), p.has_pad_h(), p.pad_h(), p.has_pad_w(), p.pad_w(), axes, 0, 0);
  w.dilation = read("dilation", "dilation", p.dilation(), false, 0, false, 0, axes, 1, 1);
  return w;
}

std::vector<int> windowOutputs(const ConvolutionWindow& w, const Shape& in, int axis) {
  std::vector<int> out, padded;
  bool fits = true;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const int at = axis + 1 + static_cast<int>(i);
    const int64_t size = int64_t{in[at]} + 2 * w.pad[i];
    if (size > INT32_MAX) invalid("the padded input is {} wide on axis {}: too large", size, at);
    padded.push_back(static_cast<int>(size));
    fits = fits && w.reach(i) <= size;
    out.push_back(static_cast<int>((size - w.reach(i)) / w.stride[i] + 1));
  }
  if (!fits)
    invalid(
        "kernel {} (dilation {}) exceeds the padded input {} (bottom is {}, pad {}); use a smaller kernel_size or more "
        "pad",
        joined(w.kernel), joined(w.dilation), joined(padded), in.brief(), joined(w.pad));
  return out;
}

std::vector<int32_t> tapTable(const ConvolutionWindow& w, const std::vector<int>& in, const std::vector<int>& out) {
  const auto product = [](const std::vector<int>& v) {
    return std::accumulate(v.begin(), v.end(), size_t{1}, [](size_t a, int b) { return a * static_cast<size_t>(b); });
  };
  const size_t taps = product(w.kernel), positions = product(out);
  std::vector<int32_t> table;
  table.reserve(taps * positions);
  std::vector<int> k(in.size(), 0), p(in.size(), 0);
  for (size_t tap = 0; tap < taps; ++tap, next(k, w.kernel))
    for (size_t position = 0; position < positions; ++position, next(p, out)) {
      int64_t index = 0;
      for (size_t i = 0; i < in.size() && index >= 0; ++i) {
        const int64_t at = int64_t{p[i]} * w.stride[i] - w.pad[i] + int64_t{k[i]} * w.dilation[i];
        index = at < 0 || at >= in[i] ? -1 : index * in[i] + at;
      }
      table.push_back(static_cast<int32_t>(index));
    }
  return table;
}

}  // namespace crema::layers
