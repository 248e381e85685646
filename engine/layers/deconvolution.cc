// Deconvolution, the transpose of Convolution (Zeiler et al. 2010): the backward pass of a convolution used as a
// forward pass, for learnt upsampling; one or more bottoms that share the weights:
//   y[n][o][q] = b[o] + sum over i, p, k with q = p * stride - pad + k * dilation of w[i][o][k] x[n][i][p]
//   dx = convolution of dy with w;  dw[i][o][k] = sum_{n,p} x[n][i][p] dy[n][o][q];  db[o] = sum_{n,q} dy[n][o][q]
// Output size = stride (in - 1) + dilation (kernel - 1) + 1 - 2 pad.
// Options (convolution_param): as Convolution's. Parameters: weights channels x num_output/group x kernel..., bias
// num_output; `weight_filler { type: "bilinear" }` with group = num_output = channels makes it an interpolation. Cost:
// as the convolution's gradient; stride > 1 with dilation > 1 on the same axis uses the slow reference loops.
#include "layers/builtin.h"
#include "layers/convolution_base.h"

namespace crema::layers {
namespace {

class Deconvolution : public ConvolutionBase {
 public:
  Deconvolution(const caffe::LayerParameter& p, const LayerContext& c) : ConvolutionBase(p, c, true) {}

 protected:
  std::vector<int> outputs(const ConvolutionWindow& w, const Shape& in, int axis) const override {
    std::vector<int> out;
    for (size_t i = 0; i < w.kernel.size(); ++i) {
      const int at = axis + 1 + static_cast<int>(i);
      const int64_t size = w.stride[i] * (int64_t{in[at]} - 1) + w.reach(i) - 2 * int64_t{w.pad[i]};
      if (size <= 0 || size > INT32_MAX)
        invalid(
            "the top would be {} wide on axis {} (bottom is {}, kernel {}, stride {}, pad {}); correct kernel_size, "
            "stride or pad",
            size, at, in.brief(), w.kernel[i], w.stride[i], w.pad[i]);
      out.push_back(static_cast<int>(size));
    }
    return out;
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      for (size_t i = 0; i < bottom.size(); ++i) {
        T* y = top[i]->mutableData<T>();
        conv_.backwardData<T>(kernels(), bottom[i]->data<T>(), weights<T>(), y);
        if (const T* b = bias<T>()) addBias(b, y);
      }
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    withType(context().dtype, [&]<class T>() {
      for (size_t i = 0; i < top.size(); ++i) {
        const T* dy = top[i]->diff<T>();
        biasGradient<T>(*top[i]);
        if (paramPropagates(0))
          conv_.backwardWeights<T>(kernels(), dy, bottom[i]->data<T>(), params()[0]->mutableDiff<T>());
        if (down[i]) conv_.forward<T>(kernels(), dy, weights<T>(), nullptr, bottom[i]->mutableDiff<T>());
      }
    });
  }

 private:
  template <class T>
  void addBias(const T* b, T* y) {
    kernels().pool().run(items_, [&](int n, int) {
      for (int64_t c = 0; c < channelsOut_; ++c) {
        T* plane = y + (int64_t{n} * channelsOut_ + c) * positions_;
        for (int64_t k = 0; k < positions_; ++k) plane[k] += b[c];
      }
    });
  }
};

}  // namespace

void addDeconvolution(LayerRegistry& r) { r.add<Deconvolution>("Deconvolution", "the transpose of a convolution"); }

}  // namespace crema::layers
