#include "layers/convolution_base.h"

namespace crema::layers {

void ConvolutionBase::configure(const Blobs& bottom, const Blobs&) {
  const auto& p = param_.convolution_param();
  const Shape& in = bottom[0]->shape();
  axis_ = in.canonicalAxis(p.axis());
  spatial_ = in.axes() - axis_ - 1;
  window_ = readConvolutionWindow(p, spatial_);
  channels_ = in[axis_], channelsOut_ = static_cast<int>(p.num_output());
  const int group = static_cast<int>(p.group());
  if (channelsOut_ <= 0) invalid("num_output must be given, positive and below 2^31, not {}", p.num_output());
  if (group <= 0 || channels_ % group || channelsOut_ % group)
    invalid("group {} must divide both the {} input channels and num_output {}", group, channels_, channelsOut_);
  std::vector<int> weights = transposed_ ? std::vector<int>{channels_, channelsOut_ / group}
                                         : std::vector<int>{channelsOut_, channels_ / group};
  weights.insert(weights.end(), window_.kernel.begin(), window_.kernel.end());
  addParam(Shape(weights), p.weight_filler());
  if (p.bias_term()) addParam(Shape{channelsOut_}, p.bias_filler());
}

void ConvolutionBase::reshape(const Blobs& bottom, const Blobs& top) {
  const Shape& in = bottom[0]->shape();
  if (in.axes() - axis_ - 1 != spatial_) invalid("the number of axes changed: bottom is now {}", in.brief());
  if (in[axis_] != channels_) invalid("the bottom has {} channels, the weights were made for {}", in[axis_], channels_);
  for (const Blob* b : bottom)
    if (!(b->shape() == in)) invalid("all bottoms need one shape: {} and {}", in.brief(), b->shape().brief());
  const std::vector<int> small(in.dims().begin() + axis_ + 1, in.dims().end()), large = outputs(window_, in, axis_);
  std::vector<int> out(in.dims().begin(), in.dims().begin() + axis_);
  out.push_back(channelsOut_);
  out.insert(out.end(), large.begin(), large.end());
  for (Blob* t : top) t->reshape(Shape(out));
  items_ = in.count(0, axis_), positions_ = top[0]->shape().count(axis_ + 1);
  const int group = static_cast<int>(param_.convolution_param().group());
  if (transposed_)
    conv_.reshape(window_, items_, channelsOut_, channels_, group, large, small);
  else
    conv_.reshape(window_, items_, channels_, channelsOut_, group, small, large);
}

}  // namespace crema::layers
