// Scale: y = g x [+ b], g and b repeated over the axes that they lack;  dx = g dy, dg = sum of dy x and db = sum of dy
// over these axes. In place allowed (a copy of x is kept).
// g is learnt (one bottom): its shape is num_axes axes of the bottom from `axis` on (-1: all to the end, 0: a single
// number). Or it is bottom 1, whose shape must match bottom 0's axes from `axis` on; num_axes and filler are then
// ignored. Options (scale_param): axis (1), num_axes (1), filler (constant 1), bias_term (false), bias_filler (constant
// 0). Parameters: g (with one bottom), then b of the same shape (with bias_term).
#include "layers/builtin.h"
#include "layers/norm_group.h"
#include "layers/per_channel.h"

namespace crema::layers {
namespace {

class Scale : public PerChannelLayer, public NormFollower {
 public:
  using PerChannelLayer::PerChannelLayer;
  bool isStep(const Blobs& bottom, int) const override {
    const auto& p = param_.scale_param();
    return bottom.size() == 1 && context().dtype == DType::kFloat32 && bottom[0]->shape().axes() > 1 &&
           bottom[0]->shape().canonicalAxis(p.axis()) == 1 && params()[0]->shape().axes() == 1;
  }
  bool follow(const Blobs& bottom, kernels::NormSteps<float>* steps) const override {
    if (steps->scaled || steps->rectified || !isStep(bottom, 0)) return false;
    steps->scaled = true, steps->scale = params()[0]->data<float>();
    steps->offset = biased() ? params().back()->data<float>() : nullptr;
    return true;
  }
  void addSums(const kernels::NormSums& sums) override {
    const auto add = [&](int param, const double* from) {
      if (!paramPropagates(param)) return;
      float* to = params()[static_cast<size_t>(param)]->mutableDiff<float>();
      for (int d = 0; d < channels_.channels; ++d) to[d] = static_cast<float>(to[d] + from[d]);
    };
    add(0, sums.scale);
    if (biased()) add(1, sums.offset);
  }

 protected:
  void configure(const Blobs& bottom, const Blobs&) override {
    const auto& p = param_.scale_param();
    const bool given = bottom.size() > 1;
    const Shape shape = given ? bottom[1]->shape() : learntShape(bottom[0]->shape(), p.axis(), p.num_axes());
    caffe::FillerParameter ones;
    ones.set_value(1);
    if (!given) addParam(shape, p.has_filler() ? p.filler() : ones);
    if (p.bias_term()) addParam(shape, p.bias_filler());
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    PerChannelLayer::reshape(bottom, top);
    channels_ = place(bottom[0]->shape(), factors(bottom).shape(), param_.scale_param().axis());
    if (biased() && params().back()->count() != channels_.channels)
      invalid("bottom 1 is {}, the bias was made for {}", factors(bottom).shape().brief(),
              params().back()->shape().brief());
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    keepBottom(bottom, top);
    withType(context().dtype, [&]<class T>() {
      const T *x = bottom[0]->data<T>(), *g = factors(bottom).template data<T>();
      const T* b = biased() ? params().back()->data<T>() : nullptr;
      T* y = top[0]->mutableData<T>();
      if (!b && channels_.perChannel() == 1) return kernels::multiply(kernels(), bottom[0]->count(), x, g, y);
      const std::vector<double> factor = wide(g), offset = b ? wide(b) : std::vector<double>();
      kernels::channelAffine<T>(kernels(), channels_.shape(), x, nullptr, factor.data(), b ? offset.data() : nullptr,
                                y);
    });
  }
  void steps(const Blobs& bottom, int, kernels::Epilogue<float>* steps) override {
    steps->push_back({kernels::Step<float>::kAffine, nullptr, factors(bottom).data<float>(),
                      biased() ? params().back()->data<float>() : nullptr});
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    const bool given = bottom.size() > 1;
    withType(context().dtype, [&]<class T>() {
      const T *dy = top[0]->diff<T>(), *x = bottomBefore<T>(bottom, top);
      if (given ? down[1] : paramPropagates(0))
        sumInto(channels_, factors(bottom).template mutableDiff<T>(), !given, [&](double* sums) {
          kernels::channelDots<T>(kernels(), channels_.shape(), dy, nullptr, x, nullptr, sums);
        });
      if (biased() && paramPropagates(given ? 0 : 1))
        sumInto(channels_, params().back()->mutableDiff<T>(), true,
                [&](double* sums) { kernels::channelSums(kernels(), channels_.shape(), dy, sums); });
      if (!down[0]) return;
      const T* g = factors(bottom).template data<T>();
      T* dx = bottom[0]->mutableDiff<T>();
      if (channels_.perChannel() == 1) return kernels::multiply(kernels(), bottom[0]->count(), dy, g, dx);
      kernels::channelAffine<T>(kernels(), channels_.shape(), dy, nullptr, wide(g).data(), nullptr, dx);
    });
  }

 private:
  bool biased() const { return param_.scale_param().bias_term(); }
  Blob& factors(const Blobs& bottom) const { return bottom.size() > 1 ? *bottom[1] : *params()[0]; }
  template <class T>
  std::vector<double> wide(const T* numbers) const {
    return {numbers, numbers + channels_.channels};
  }
  Channels channels_;
};

}  // namespace

void addScale(LayerRegistry& r) { r.add<Scale>("Scale", "multiplies along some axes"); }

}  // namespace crema::layers
