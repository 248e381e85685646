// SoftmaxWithLoss: cross entropy of the softmax p of bottom 0 and the class numbers in bottom 1:
//   loss = -sum log(max(p[label], FLT_MIN)) / N;  dx = (p - 1[label]) * weight / N, 0 where the label is ignored
// N (loss_param.normalization): FULL all positions, VALID (default) those not ignored, BATCH_SIZE the product of the
// axes before `axis`, NONE 1; at least 1. The old `normalize` means VALID (true) or BATCH_SIZE (false) when
// `normalization` is not given. Options: softmax_param.axis, loss_param.ignore_label. A second top is the softmax
// (Caffe documents it, and fails).
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <vector>

#include "layers/builtin.h"
#include "layers/loops.h"
#include "layers/loss_layer.h"

namespace crema::layers {
namespace {

class SoftmaxWithLoss : public SoftmaxLossLayer {
 public:
  using SoftmaxLossLayer::SoftmaxLossLayer;

 protected:
  void configure(const Blobs& bottom, const Blobs& top) override {
    useAxis(bottom, top, param_.softmax_param().axis());
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      softmax<T>(bottom, top);
      const std::vector<int> labels = grid_.list<T>(*bottom[1], param_.loss_param());
      const T* prob = prob_.data<T>();
      std::vector<double> terms(labels.size());
      eachTile(kernels().pool(), channels(), [&](int64_t o, int64_t from, int64_t to) {
        for (int64_t p = from, k = o * grid_.inner + from; p < to; ++p, ++k) {
          const int label = labels[static_cast<size_t>(k)];
          if (label < 0) continue;
          const double right = prob[(o * grid_.classes + label) * grid_.inner + p];
          terms[static_cast<size_t>(k)] = std::log(std::max(right, double{FLT_MIN}));
        }
      });
      double loss = 0;  // one chain, in the order of the positions
      for (const double term : terms) loss -= term;
      valid_ = std::ssize(labels) - std::count(labels.begin(), labels.end(), -1);
      top[0]->mutableData<T>()[0] = static_cast<T>(loss / divisor());
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      const std::vector<int> labels = grid_.list<T>(*bottom[1], param_.loss_param());
      const T scale = static_cast<T>(top[0]->diff<T>()[0] / divisor());
      const T* prob = prob_.data<T>();
      T* dx = bottom[0]->mutableDiff<T>();
      eachTile(kernels().pool(), channels(), [&](int64_t o, int64_t from, int64_t to) {
        const int* label = labels.data() + o * grid_.inner;
        for (int c = 0; c < grid_.classes; ++c)
          for (int64_t p = from, i = (o * grid_.classes + c) * grid_.inner + from; p < to; ++p, ++i)
            dx[i] = label[p] < 0 ? T(0) : (prob[i] - (label[p] == c ? T(1) : T(0))) * scale;
      });
    });
  }

 private:
  Channels channels() const { return {grid_.outer, grid_.classes, grid_.inner}; }
};

}  // namespace

void addSoftmaxWithLoss(LayerRegistry& r) {
  r.add<SoftmaxWithLoss>("SoftmaxWithLoss", "cross entropy after a softmax");
}

}  // namespace crema::layers
