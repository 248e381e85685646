// Windows of Conv, ConvTranspose, pools and Pad: kernel, strides, dilations and pads of each spatial axis.
#pragma once
#include "exchange/import_graph.h"

namespace crema::exchange {

struct ImportWindow {
  Dims kernel, stride, dilation, begin, end;  // by spatial axis; pads in front and behind

  size_t axes() const { return kernel.size(); }
  int64_t extent(size_t a) const { return (kernel[a] - 1) * dilation[a] + 1; }
};

// `spatial`: the input's sizes, which auto_pad SAME needs.
ImportWindow windowOf(const ImportNode& n, const Dims& kernel, const Dims& spatial);

}  // namespace crema::exchange
