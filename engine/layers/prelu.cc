// PReLU (He et al. 2015): y = x for x > 0, a_c x otherwise, one a for each channel (axis 1) or one for all;
//   dx = dy (x > 0 ? 1 : a_c),  da_c = sum over channel c of dy min(x, 0). In place allowed (a copy of x is kept).
// Options (prelu_param): filler (constant 0.25), channel_shared (false). Parameter: a, one for each channel, or a
// scalar. The bottom has two axes or more.
#include "layers/builtin.h"
#include "layers/per_channel.h"

namespace crema::layers {
namespace {

constexpr double kBelow[2] = {1, 0};  // indexed by x > 0: no branch, as signs are unpredictable

class PReLU : public PerChannelLayer {
 public:
  using PerChannelLayer::PerChannelLayer;
  Arity arity() const override { return {}; }

 protected:
  void configure(const Blobs& bottom, const Blobs&) override {
    const auto& p = param_.prelu_param();
    if (bottom[0]->shape().axes() < 2)
      invalid("Number of axes of bottom blob must be >=2: it is {}", bottom[0]->shape().brief());
    caffe::FillerParameter quarter;
    quarter.set_value(0.25f);
    addParam(p.channel_shared() ? Shape{} : Shape{bottom[0]->shape()[1]}, p.has_filler() ? p.filler() : quarter);
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    PerChannelLayer::reshape(bottom, top);
    channels_ = place(bottom[0]->shape(), params()[0]->shape(), 1);
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    keepBottom(bottom, top);
    withType(context().dtype, [&]<class T>() {
      const T *x = bottom[0]->data<T>(), *a = params()[0]->data<T>();
      T* y = top[0]->mutableData<T>();
      eachRow(kernels().pool(), channels_, [&](int d, int64_t from, int64_t to) {
        const T slope[2] = {a[d], T(1)};
        for (int64_t i = from; i < to; ++i) y[i] = slope[x[i] > 0] * x[i];
      });
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    withType(context().dtype, [&]<class T>() {
      const T *dy = top[0]->diff<T>(), *x = bottomBefore<T>(bottom, top), *a = params()[0]->data<T>();
      if (paramPropagates(0))
        sumInto(channels_, params()[0]->mutableDiff<T>(), true, [&](double* sums) {
          channelSums(kernels().pool(), channels_, sums,
                      [=](int64_t i, int) { return kBelow[x[i] > 0] * dy[i] * x[i]; });
        });
      if (!down[0]) return;
      T* dx = bottom[0]->mutableDiff<T>();
      eachRow(kernels().pool(), channels_, [&](int d, int64_t from, int64_t to) {
        const T slope[2] = {a[d], T(1)};
        for (int64_t i = from; i < to; ++i) dx[i] = slope[x[i] > 0] * dy[i];
      });
    });
  }

 private:
  Channels channels_;
};

}  // namespace

void addPReLU(LayerRegistry& r) { r.add<PReLU>("PReLU", "rectified linear unit with learnt slopes"); }

}  // namespace crema::layers
