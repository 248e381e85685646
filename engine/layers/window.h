// kernel, stride, pad and dilation of a ConvolutionParameter: given once, once per spatial axis, or as _h/_w (two axes
// only), never both.
#pragma once
#include <vector>

#include "caffe.pb.h"
#include "tensor/shape.h"

namespace crema::layers {

constexpr int kLongestWindow = 1 << 24;  // kernel, stride, pad: so that products of two do not overflow

struct ConvolutionWindow {
  std::vector<int> kernel, stride, pad, dilation;  // one entry per spatial axis
  int axes() const { return static_cast<int>(kernel.size()); }
  int64_t reach(size_t i) const { return int64_t{dilation[i]} * (kernel[i] - 1) + 1; }  // input under one kernel
};

ConvolutionWindow readConvolutionWindow(const caffe::ConvolutionParameter& p,
                                        int spatialAxes);  // invalid() names the field

// floor((in + 2 pad - (dilation (kernel - 1) + 1)) / stride) + 1 for each axis of `in` behind `axis`; invalid() where
// the kernel exceeds the padded input.
std::vector<int> windowOutputs(const ConvolutionWindow& w, const Shape& in, int axis);

// table[k * P + p]: the input position under tap k of output position p, -1 in the padding. K taps and P positions in
// row-major order over all axes; any number of axes, none included (one tap, one position).
std::vector<int32_t> tapTable(const ConvolutionWindow& w, const std::vector<int>& in, const std::vector<int>& out);

}  // namespace crema::layers
