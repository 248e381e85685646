// HingeLoss, one against all: margins m = max(0, 1 - x) for the score of the label, max(0, 1 + x) for the others:
//   norm L1 (default)  loss = sum m / N,    dx = -+[m > 0] weight / N
//   norm L2            loss = sum m^2 / N,  dx = -+2 m weight / N       (- for the label)
// Bottoms: scores N x ..., all values of an item are classes; N class numbers. Options: hinge_loss_param.norm.
#include "layers/builtin.h"
#include "layers/loss_layer.h"

namespace crema::layers {
namespace {

class HingeLoss : public ItemLossLayer {
 public:
  using ItemLossLayer::ItemLossLayer;

 protected:
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      double loss = 0;
      eachMargin<T>(bottom, [&](int64_t, double margin, double) { loss += squared() ? margin * margin : margin; });
      top[0]->mutableData<T>()[0] = static_cast<T>(loss / items());
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      T* dx = bottom[0]->mutableDiff<T>();
      const double scale = static_cast<double>(top[0]->diff<T>()[0]) / items();
      eachMargin<T>(bottom, [&](int64_t i, double margin, double sign) {
        dx[i] = static_cast<T>(scale * sign * (squared() ? 2 * margin : margin > 0 ? 1 : 0));
      });
    });
  }

 private:
  bool squared() const { return param_.hinge_loss_param().norm() == caffe::HingeLossParameter::L2; }
  // use(index, margin, sign of dm/dx)
  template <class T, class Use>
  void eachMargin(const Blobs& bottom, Use use) const {
    const T* x = bottom[0]->data<T>();
    grid_.forEach<T>(*bottom[1], caffe::LossParameter(), [&](int64_t first, int label) {
      for (int c = 0; c < grid_.classes; ++c) {
        const double sign = c == label ? -1 : 1, value = 1 + sign * static_cast<double>(x[first + c]);
        use(first + c, value < 0 ? 0 : value, sign);
      }
    });
  }
};

}  // namespace

void addHingeLoss(LayerRegistry& r) { r.add<HingeLoss>("HingeLoss", "margins, one class against all others"); }

}  // namespace crema::layers
