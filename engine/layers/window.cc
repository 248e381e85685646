#include "layers/window.h"

#include "base/error.h"

namespace crema {
namespace {

using Field = google::protobuf::RepeatedField<uint32_t>;

void read(const char* name, const Field& values, bool hasH, uint32_t h, bool hasW, uint32_t w, int axes, int fallback,
          int least, std::array<int, 2>& out) {
  if (hasH || hasW) {
    if (axes != 2) invalid("{}_h and {}_w need two spatial axes, here are {}", name, name, axes);
    if (!values.empty()) invalid("give either {} or {}_h and {}_w, not both", name, name, name);
    out = {static_cast<int>(h), static_cast<int>(w)};
  } else {
    if (values.size() > 1 && values.size() != axes)
      invalid("{} is given {} times; give it once, or once for each of the {} spatial axes", name, values.size(), axes);
    if (values.empty() && fallback < 0) invalid("{} must be given", name);
    for (int i = 0; i < axes; ++i) {
      const int v = values.empty() ? fallback : static_cast<int>(values.Get(values.size() == 1 ? 0 : i));
      out[static_cast<size_t>(i + 2 - axes)] = v;
    }
  }
  constexpr int kMost = 1 << 24;  // products of two stay far from overflow
  for (int v : out)
    if (v < least || v > kMost) invalid("{} must be {} to {}, not {}", name, least, kMost, static_cast<uint32_t>(v));
}

}  // namespace

Window readWindow(const caffe::ConvolutionParameter& p, int axes) {
  Window w;
  read("kernel", p.kernel_size(), p.has_kernel_h(), p.kernel_h(), p.has_kernel_w(), p.kernel_w(), axes, axes ? -1 : 1,
       1, w.kernel);
  read("stride", p.stride(), p.has_stride_h(), p.stride_h(), p.has_stride_w(), p.stride_w(), axes, 1, 1, w.stride);
  read("pad", p.pad(), p.has_pad_h(), p.pad_h(), p.has_pad_w(), p.pad_w(), axes, 0, 0, w.pad);
  read("dilation", p.dilation(), false, 0, false, 0, axes, 1, 1, w.dilation);
  if (axes == 1) w.pad[0] = 0;
  return w;
}

}  // namespace crema
