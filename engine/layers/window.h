// kernel, stride, pad and dilation of a ConvolutionParameter: given once, once per axis, or as _h/_w (two axes only),
// never both.
#pragma once
#include <array>

#include "caffe.pb.h"

namespace crema {

// Index 0 is the vertical axis, 1 the horizontal one; with one spatial axis the vertical entries are neutral.
struct Window {
  std::array<int, 2> kernel{1, 1}, stride{1, 1}, pad{0, 0}, dilation{1, 1};
};

Window readWindow(const caffe::ConvolutionParameter& p, int spatialAxes);  // invalid() names the field

}  // namespace crema
