// Bias: y = x + b, b repeated over the axes that it lacks;  dx = dy, db = sum of dy over these axes. In place allowed.
// b is learnt (one bottom): its shape is num_axes axes of the bottom from `axis` on (-1: all to the end, 0: a single
// number). Or it is bottom 1, whose shape must match bottom 0's axes from `axis` on; num_axes and filler are then
// ignored. Options (bias_param): axis (1), num_axes (1), filler (constant 0). Parameters: b, or none with two bottoms.
#include "layers/builtin.h"
#include "layers/per_channel.h"

namespace crema::layers {
namespace {

class Bias : public PerChannelLayer {
 public:
  using PerChannelLayer::PerChannelLayer;

 protected:
  void configure(const Blobs& bottom, const Blobs&) override {
    const auto& p = param_.bias_param();
    if (bottom.size() == 1) addParam(learntShape(bottom[0]->shape(), p.axis(), p.num_axes()), p.filler());
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    PerChannelLayer::reshape(bottom, top);
    channels_ = place(bottom[0]->shape(), numbers(bottom).shape(), param_.bias_param().axis());
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      const T *x = bottom[0]->data<T>(), *b = numbers(bottom).template data<T>();
      T* y = top[0]->mutableData<T>();
      eachRow(kernels().pool(), channels_, [&](int d, int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) y[i] = x[i] + b[d];
      });
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    const bool given = bottom.size() > 1;
    withType(context().dtype, [&]<class T>() {
      const T* dy = top[0]->diff<T>();
      if (given ? down[1] : paramPropagates(0))
        sumInto(channels_, numbers(bottom).template mutableDiff<T>(), !given,
                [&](double* sums) { kernels::channelSums(kernels(), channels_.shape(), dy, sums); });
      if (down[0] && top[0] != bottom[0]) bottom[0]->copyDiffFrom(*top[0]);
    });
  }

 private:
  Blob& numbers(const Blobs& bottom) const { return bottom.size() > 1 ? *bottom[1] : *params()[0]; }
  Channels channels_;
};

}  // namespace

void addBias(LayerRegistry& r) { r.add<Bias>("Bias", "adds numbers along some axes"); }

}  // namespace crema::layers
