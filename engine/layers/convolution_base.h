// What Convolution and its transpose have in common: options, parameters, checks, gradients of the bias.
#pragma once
#include "layers/layer.h"
#include "layers/spatial_conv.h"

namespace crema::layers {

class ConvolutionBase : public Layer {
 public:
  ConvolutionBase(const caffe::LayerParameter& p, const LayerContext& c, bool transposed)
      : Layer(p, c), conv_(c.dtype), transposed_(transposed) {}
  Arity arity() const override { return {1, -1, 1, -1, true}; }
  Reads readsBackward() const override { return {.bottoms = true, .tops = false}; }
  int64_t multiplyAdds(const Blobs& bottom, const Blobs& top) const override {
    int64_t all = 0;
    for (const Blob* b : transposed_ ? bottom : top) all += b->count() / b->shape()[axis_];
    return all * params()[0]->count();
  }

 protected:
  void configure(const Blobs& bottom, const Blobs& top) override;
  void reshape(const Blobs& bottom, const Blobs& top) override;
  bool channelsAreAxis1() const { return axis_ == 1; }
  // Sizes of the top's spatial axes; invalid() where none are possible.
  virtual std::vector<int> outputs(const ConvolutionWindow& window, const Shape& in, int axis) const = 0;

  template <class T>
  const T* weights() const {
    return params()[0]->data<T>();
  }
  template <class T>
  const T* bias() const {
    return params().size() > 1 ? params()[1]->data<T>() : nullptr;
  }
  template <class T>
  void biasGradient(const Blob& top) {
    if (params().size() > 1 && paramPropagates(1))
      addChannelSums<T>(kernels(), items_, channelsOut_, positions_, top.diff<T>(), params()[1]->mutableDiff<T>());
  }

  SpatialConv conv_;
  int items_ = 0, channelsOut_ = 0, positions_ = 0;  // of a top: items x channels x positions

 private:
  const bool transposed_;
  int axis_ = 1, spatial_ = 2, channels_ = 0;
  ConvolutionWindow window_;
};

}  // namespace crema::layers
