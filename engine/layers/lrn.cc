// LRN (local response normalisation), Krizhevsky et al. 2012.
// ACROSS_CHANNELS: s = k + (alpha / n) * sum of x^2 over n neighbouring channels, y = x s^-beta
//   dx_c = dy_c s_c^-beta - (2 alpha beta / n) x_c * sum over the window of dy y / s
// WITHIN_CHANNEL: s = 1 + alpha * AVE_n(x^2) with AVE pooling's divisor (pad (n-1)/2), y = x s^-beta; k is ignored, as
// in Caffe.
//   dx = dy s^-beta + 2 x * AVE_n backward of (-alpha beta x dy s^(-beta-1))
// Options (lrn_param): local_size (odd), alpha, beta, k,
// norm_region. 4 axes.
#include "layers/builtin.h"

namespace crema::layers {
namespace {

class LRN : public Layer {
 public:
  LRN(const caffe::LayerParameter& p, const LayerContext& c) : Layer(p, c), scale_(c.dtype) {}

  Reads readsBackward() const override { return {.bottoms = true, .tops = false}; }

 protected:
  void configure(const Blobs&, const Blobs&) override {
    const uint32_t size = param_.lrn_param().local_size();
    if (size % 2 == 0 || size > 1 << 24) invalid("local_size must be odd and at most {}, not {}", 1 << 24, size);
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape& in = bottom[0]->shape();
    if (in.axes() != 4) invalid("LRN needs 4 axes (num, channels, height, width), the bottom is {}", in.brief());
    top[0]->reshape(in);
    scale_.reshape(in);
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      if (across()) {
        kernels::lrnForward<T>(kernels(), lrnShape(bottom[0]->shape()), bottom[0]->data<T>(), top[0]->mutableData<T>());
      } else {
        kernels::lrnWithinForward<T>(kernels(), withinShape(bottom[0]->shape()), bottom[0]->data<T>(),
                                     context().needsBackward ? scale_.mutableData<T>() : nullptr,
                                     top[0]->mutableData<T>());
      }
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      if (across()) {
        kernels::lrnBackward<T>(kernels(), lrnShape(bottom[0]->shape()), bottom[0]->data<T>(), top[0]->diff<T>(),
                                bottom[0]->mutableDiff<T>());
      } else {
        kernels::lrnWithinBackward<T>(kernels(), withinShape(bottom[0]->shape()), bottom[0]->data<T>(),
                                      scale_.data<T>(), top[0]->diff<T>(), bottom[0]->mutableDiff<T>());
      }
    });
  }

 private:
  bool across() const { return param_.lrn_param().norm_region() == caffe::LRNParameter::ACROSS_CHANNELS; }
  kernels::LrnShape lrnShape(const Shape& in) const {
    const auto& p = param_.lrn_param();
    return {in[0], in[1], in[2] * in[3], static_cast<int>(p.local_size()), p.alpha(), p.beta(), p.k()};
  }
  kernels::LrnWithinShape withinShape(const Shape& in) const {
    const auto& p = param_.lrn_param();
    return {in[0], in[1], in[2], in[3], static_cast<int>(p.local_size()), p.alpha(), p.beta()};
  }

  Blob scale_;  // within a channel alone
};

}  // namespace

void addLRN(LayerRegistry& r) { r.add<LRN>("LRN", "local response normalisation"); }

}  // namespace crema::layers
