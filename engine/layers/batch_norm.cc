// BatchNorm (Ioffe & Szegedy 2015), for each channel (axis 1) over the m values of the batch:
//   y = (x - mu) r,  r = 1 / sqrt(var + eps),  mu = mean(x), var = mean((x - mu)^2)
//   dx = r (dy - mean(dy) - y mean(dy y))
// With use_global_stats mu and var are the running ones and dx = r dy. There is no factor and no offset: a Scale layer
// with bias_term follows. A bottom with one axis is one channel (Caffe aborts there). In place allowed.
// Options (batch_norm_param): use_global_stats (true in TEST, false in TRAIN), moving_average_fraction f (0.999), eps
// (1e-5). Parameters: mean C, variance C, scale factor 1, which have no gradient, so lr_mult must be 0.
//
// Running statistics are sums: a pass makes p <- f p + (mu, var m / (m - 1), 1), and global ones are the first two
// divided by the third. How several ranks and passes update them: net/running_statistics.h. Decided against: rank 0's
// statistics alone, as in Caffe with several GPUs; the mean over ranks costs no more and covers every record. Test nets
// of a solver and scoring never update them. (In Caffe a test net with use_global_stats: false does, and so trains on
// test records.) Cost: three passes over x forward, of which one reads memory; memory: 2 C numbers, and a copy of x where the
// layer works in place.
#include <cmath>
#include <vector>

#include "layers/builtin.h"
#include "layers/elementwise.h"
#include "layers/norm_group.h"

namespace crema::layers {
namespace {

class BatchNorm : public SameShapeLayer, public NormLeader {
 public:
  using SameShapeLayer::SameShapeLayer;
  bool isStep(const Blobs& bottom, int) const override {
    return global() && context().dtype == DType::kFloat32 && bottom[0]->shape().axes() > 1;
  }
  bool leads(const Blobs&) const override { return !global() && context().dtype == DType::kFloat32 && inRows(); }
  Blob& keptBottom() override { return kept(); }
  void forwardGroup(const Blobs& bottom, const Blobs& top, const kernels::NormSteps<float>& steps, bool kept) override {
    if (!kept) keepBottom(bottom, top);
    kernels::normForward<float>(kernels(), channels_.shape(), eps(), bottomBefore<float>(bottom, top), steps,
                                top[0]->mutableData<float>(), numbers());
    addToRunning<float>();
  }
  void backwardGroup(const Blobs& top, const Blobs& bottom, const kernels::NormSteps<float>& steps,
                     const kernels::NormSums& sums) override {
    kernels::normBackward<float>(kernels(), channels_.shape(), bottomBefore<float>(bottom, top), numbers(), steps,
                                 top[0]->diff<float>(), bottom[0]->mutableDiff<float>(), sums);
  }

 protected:
  void configure(const Blobs& bottom, const Blobs&) override {
    const auto& p = param_.batch_norm_param();
    if (!(p.eps() >= 0)) invalid("batch_norm_param: eps must not be negative, it is {}", p.eps());
    if (!(p.moving_average_fraction() >= 0 && p.moving_average_fraction() <= 1))
      invalid("batch_norm_param: moving_average_fraction must be in [0, 1], not {}", p.moving_average_fraction());
    if (bottom[0]->shape().axes() == 0) invalid("BatchNorm needs a bottom with an axis, here is a scalar");
    const Shape perChannel{channelsOf(bottom[0]->shape()).channels};
    for (const Shape& s : {perChannel, perChannel, Shape{1}})
      addStatistic(s, global() ? 1.0 : double{p.moving_average_fraction()});
    for (int i = 0; i < 3; ++i) {  // saved models have them, as Caffe's do
      if (i == param_.param_size()) param_.add_param()->set_lr_mult(0);
      if (param_.param(i).lr_mult() != 0)
        invalid(
            "Cannot configure batch normalization statistics as layer parameters: param {} has lr_mult {}; write "
            "lr_mult: 0, or no `param` at all",
            i, param_.param(i).lr_mult());
    }
  }

  void reshape(const Blobs& bottom, const Blobs& top) override {
    SameShapeLayer::reshape(bottom, top);
    channels_ = channelsOf(bottom[0]->shape());
    if (channels_.channels != params()[0]->count())
      invalid("the bottom is {}: {} channels, the statistics were made for {}", bottom[0]->shape().brief(),
              channels_.channels, params()[0]->count());
    const auto c = static_cast<size_t>(channels_.channels);
    mean_.resize(c), variance_.resize(c), factor_.resize(c);
  }

  void compute(const Blobs& bottom, const Blobs& top) override {
    keepBottom(bottom, top);
    withType(context().dtype, [&]<class T>() {
      if (!global() && inRows()) {
        kernels::normForward<T>(kernels(), channels_.shape(), eps(), bottom[0]->data<T>(), {}, top[0]->mutableData<T>(),
                                numbers());
        return addToRunning<T>();
      }
      if (global())
        takeRunning<T>();
      else
        measure(bottom[0]->data<T>());
      if (!global()) addToRunning<T>();
      kernels::channelAffine<T>(kernels(), channels_.shape(), bottom[0]->data<T>(), mean_.data(), factor_.data(),
                                nullptr, top[0]->mutableData<T>());
    });
  }

  void steps(const Blobs&, int, kernels::Epilogue<float>* steps) override {
    takeRunning<float>();
    stepMean_.assign(mean_.begin(), mean_.end()), stepFactor_.assign(factor_.begin(), factor_.end());
    steps->push_back({kernels::Step<float>::kAffine, stepMean_.data(), stepFactor_.data()});
  }

  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      const T *dy = top[0]->diff<T>(), *x = bottomBefore<T>(bottom, top);
      T* dx = bottom[0]->mutableDiff<T>();
      if (global())
        return kernels::channelAffine<T>(kernels(), channels_.shape(), dy, nullptr, factor_.data(), nullptr, dx);
      if (inRows()) return kernels::normBackward<T>(kernels(), channels_.shape(), x, numbers(), {}, dy, dx, {});
      const size_t c = mean_.size();
      std::vector<double> ofDy(c), ofBoth(c);  // turned into the constants of dx = r (dy - ofDy + ofBoth (x - mu))
      kernels::channelSums(kernels(), channels_.shape(), dy, ofDy.data());
      kernels::channelDots<T>(kernels(), channels_.shape(), dy, nullptr, x, mean_.data(), ofBoth.data());
      const double m = perChannel();
      for (size_t d = 0; d < c; ++d) {
        const double r = factor_[d];
        ofDy[d] /= m, ofBoth[d] *= -r * r / m;
      }
      kernels::channelMix<T>(kernels(), channels_.shape(), dy, ofDy.data(), x, mean_.data(), ofBoth.data(),
                             factor_.data(), dx);
    });
  }

 private:
  bool global() const {
    const auto& p = param_.batch_norm_param();
    return p.has_use_global_stats() ? p.use_global_stats() : !training();
  }
  static Channels channelsOf(const Shape& x) { return x.axes() == 1 ? Channels{1, 1, x[0]} : Channels::of(x, 1, 2); }
  double perChannel() const { return std::max<double>(1, static_cast<double>(channels_.perChannel())); }
  bool inRows() const { return channels_.inner > 1; }  // else a channel's numbers lie apart: vectors over channels
  kernels::NormNumbers numbers() { return {mean_.data(), variance_.data(), factor_.data()}; }
  double eps() const { return param_.batch_norm_param().eps(); }

  template <class T>
  void measure(const T* x) {
    const double m = perChannel();
    kernels::channelSums(kernels(), channels_.shape(), x, mean_.data());
    for (double& sum : mean_) sum /= m;
    kernels::channelDots(kernels(), channels_.shape(), x, mean_.data(), x, mean_.data(), variance_.data());
    for (size_t d = 0; d < mean_.size(); ++d) variance_[d] /= m, factor_[d] = 1 / std::sqrt(variance_[d] + eps());
  }

  template <class T>
  void addToRunning() {
    const auto m = static_cast<double>(channels_.perChannel());
    const double unbiased = m > 1 ? m / (m - 1) : 1, one = 1;
    std::vector<double> variance = variance_;
    for (double& v : variance) v *= unbiased;
    addToStatistic<T>(0, mean_.data()), addToStatistic<T>(1, variance.data()), addToStatistic<T>(2, &one);
  }

  template <class T>
  void takeRunning() {
    const T *sums = params()[0]->data<T>(), *squares = params()[1]->data<T>(), total = params()[2]->data<T>()[0];
    const double scale = total == 0 ? 0 : 1 / double{total};
    for (size_t d = 0; d < mean_.size(); ++d) {
      const double variance = squares[d] * scale;
      if (variance + eps() <= 0)
        badData(
            "the running variance of channel {} is {}, with eps {} not positive; the weights are damaged or not "
            "those of this layer",
            d, variance, eps());
      mean_[d] = sums[d] * scale, factor_[d] = 1 / std::sqrt(variance + eps());
    }
  }

  Channels channels_;
  std::vector<double> mean_, variance_, factor_;  // of the last pass; factor: 1 / sqrt(variance + eps)
  std::vector<float> stepMean_, stepFactor_;
};

}  // namespace

void addBatchNorm(LayerRegistry& r) { r.add<BatchNorm>("BatchNorm", "batch normalisation"); }

}  // namespace crema::layers
