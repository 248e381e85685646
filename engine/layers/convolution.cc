// Convolution (cross-correlation), one or more bottoms that share the weights:
//   y[n][o][p] = b[o] + sum_{i,k} w[o][i][k] x[n][i][p * stride - pad + k * dilation]
//   dx = transposed convolution of dy with w
//   dw[o][i][k] = sum_{n,p} dy[n][o][p] x[n][i][p * stride - pad + k * dilation]
//   db[o] = sum_{n,p} dy[n][o][p]
// Output size = floor((in + 2 pad - (dilation (kernel - 1) + 1)) / stride) + 1. Zero padding.
// Options (convolution_param): num_output, kernel_size | kernel_h/w, stride, pad, dilation, group, bias_term, fillers,
// axis. Parameters: weights num_output x channels/group x kernel..., bias num_output. All axes behind `axis` are
// spatial, any number of them; `engine` and `force_nd_im2col` are accepted and change nothing.
#include "layers/builtin.h"
#include "layers/convolution_base.h"

namespace crema::layers {
namespace {

class Convolution : public ConvolutionBase {
 public:
  Convolution(const caffe::LayerParameter& p, const LayerContext& c) : ConvolutionBase(p, c, false) {}
  bool takesSteps(const Blobs& bottom) const override {
    return bottom.size() == 1 && channelsAreAxis1() && conv_.direct() && context().dtype == DType::kFloat32;
  }

 protected:
  std::vector<int> outputs(const ConvolutionWindow& window, const Shape& in, int axis) const override {
    return windowOutputs(window, in, axis);
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      for (size_t i = 0; i < bottom.size(); ++i)
        conv_.forward<T>(kernels(), bottom[i]->data<T>(), weights<T>(), bias<T>(), top[i]->mutableData<T>());
    });
  }
  void computeInto(const Blobs& bottom, const kernels::Epilogue<float>& steps, Blob* to) override {
    conv_.forward(kernels(), bottom[0]->data<float>(), weights<float>(), bias<float>(), to->mutableData<float>(),
                  steps);
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    withType(context().dtype, [&]<class T>() {
      for (size_t i = 0; i < top.size(); ++i) {
        const T* dy = top[i]->diff<T>();
        biasGradient<T>(*top[i]);
        if (paramPropagates(0))
          conv_.backwardWeights<T>(kernels(), bottom[i]->data<T>(), dy, params()[0]->mutableDiff<T>());
        if (down[i]) conv_.backwardData<T>(kernels(), dy, weights<T>(), bottom[i]->mutableDiff<T>());
      }
    });
  }
};

}  // namespace

void addConvolution(LayerRegistry& r) { r.add<Convolution>("Convolution", "cross-correlation with learnt filters"); }

}  // namespace crema::layers
