// MultinomialLogisticLoss: cross entropy of probabilities, such as a Softmax gives, and class numbers:
//   loss = -sum log(max(p[label], 1e-20)) / N;  dp[label] = -weight / (N max(p[label], 1e-20)), 0 for other classes
// Bottoms: N x ..., all values of an item are classes; N class numbers. SoftmaxWithLoss combines both and is
// numerically more stable.
#include <cmath>

#include "layers/builtin.h"
#include "layers/loss_layer.h"

namespace crema::layers {
namespace {

class MultinomialLogisticLoss : public ItemLossLayer {
 public:
  using ItemLossLayer::ItemLossLayer;

 protected:
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      double loss = 0;
      eachLabel<T>(bottom, [&](int64_t, double p) { loss -= std::log(p); });
      top[0]->mutableData<T>()[0] = static_cast<T>(loss / items());
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    bottom[0]->fillDiff(0);
    withType(context().dtype, [&]<class T>() {
      T* dx = bottom[0]->mutableDiff<T>();
      const double scale = -static_cast<double>(top[0]->diff<T>()[0]) / items();
      eachLabel<T>(bottom, [&](int64_t i, double p) { dx[i] = static_cast<T>(scale / p); });
    });
  }

 private:
  template <class T, class Use>
  void eachLabel(const Blobs& bottom, Use use) const {
    constexpr double kLeast = 1e-20;
    const T* p = bottom[0]->data<T>();
    grid_.forEach<T>(*bottom[1], caffe::LossParameter(), [&](int64_t first, int label) {
      const double value = p[first + label];
      use(first + label, value < kLeast ? kLeast : value);
    });
  }
};

}  // namespace

void addMultinomialLogisticLoss(LayerRegistry& r) {
  r.add<MultinomialLogisticLoss>("MultinomialLogisticLoss", "cross entropy of probabilities and classes");
}

}  // namespace crema::layers
