// Parameter: a learnt blob as a top; starts at 0 unless weights are given; its gradient is the top's: y = w;  dw = dy.
// Options (parameter_param): shape. The top is a copy, so that nothing above can change the parameter in place, and
// gradients of several passes add up (in Caffe, which shares the memory, the last pass alone counts).
#include "layers/builtin.h"

namespace crema::layers {
namespace {

class Parameter : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {0, 0, 1, 1}; }

 protected:
  void configure(const Blobs&, const Blobs&) override {
    if (!param_.parameter_param().has_shape()) invalid("parameter_param.shape must be given");
    addParam(toShape(param_.parameter_param().shape()), caffe::FillerParameter());
  }
  void reshape(const Blobs&, const Blobs& top) override { top[0]->reshape(params()[0]->shape()); }
  void compute(const Blobs&, const Blobs& top) override { top[0]->copyDataFrom(*params()[0]); }
  void gradient(const Blobs& top, const std::vector<bool>&, const Blobs&) override {
    if (!paramPropagates(0)) return;
    withType(context().dtype, [&]<class T>() {
      T* sum = params()[0]->mutableDiff<T>();
      kernels::add<T>(kernels(), top[0]->count(), sum, top[0]->diff<T>(), sum);
    });
  }
};

}  // namespace

void addParameter(LayerRegistry& r) { r.add<Parameter>("Parameter", "a learnt blob as a top"); }

}  // namespace crema::layers
