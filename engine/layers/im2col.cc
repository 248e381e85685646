// Im2col: the values under each tap of a kernel as channels, as a convolution multiplies them with weights:
//   y[n][c K + k][p] = x[n][c][p * stride - pad + k * dilation], 0 in the padding;  dx = the sum of dy over all copies
// Options (convolution_param): kernel_size | kernel_h/w, stride, pad, dilation, axis; any number of spatial axes. top =
// the axes before `axis`, channels K, and the convolution's output sizes.
#include "layers/builtin.h"
#include "layers/window.h"

namespace crema::layers {
namespace {

class Im2col : public Layer {
 public:
  using Layer::Layer;

 protected:
  void configure(const Blobs& bottom, const Blobs&) override {
    const Shape& in = bottom[0]->shape();
    axis_ = in.canonicalAxis(param_.convolution_param().axis());
    window_ = readConvolutionWindow(param_.convolution_param(), in.axes() - axis_ - 1);
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape& in = bottom[0]->shape();
    if (in.axes() - axis_ - 1 != window_.axes()) invalid("the number of axes changed: bottom is now {}", in.brief());
    const std::vector<int> out = windowOutputs(window_, in, axis_);
    std::vector<int> dims(in.dims().begin(), in.dims().begin() + axis_);
    dims.push_back(Shape{in[axis_], Shape(window_.kernel).count()}.count());
    dims.insert(dims.end(), out.begin(), out.end());
    top[0]->reshape(Shape(dims));
    if (!(in == shape_))
      taps_ = tapTable(window_, std::vector<int>(in.dims().begin() + axis_ + 1, in.dims().end()), out);
    shape_ = in;
    planes_ = in.count(0, axis_ + 1), plane_ = in.count(axis_ + 1);
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      const T* x = bottom[0]->data<T>();
      T* y = top[0]->mutableData<T>();
      eachPlane([&](int64_t from, int64_t to) {
        for (size_t i = 0; i < taps_.size(); ++i)
          y[to + static_cast<int64_t>(i)] = taps_[i] < 0 ? T(0) : x[from + taps_[i]];
      });
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      const T* dy = top[0]->diff<T>();
      T* dx = bottom[0]->mutableDiff<T>();
      eachPlane([&](int64_t from, int64_t to) {
        std::fill_n(dx + from, plane_, T(0));
        for (size_t i = 0; i < taps_.size(); ++i)
          if (taps_[i] >= 0) dx[from + taps_[i]] += dy[to + static_cast<int64_t>(i)];
      });
    });
  }

 private:
  template <class Use>
  void eachPlane(Use use) {
    kernels().pool().run(
        planes_, [&](int p, int) { use(int64_t{p} * plane_, int64_t{p} * static_cast<int64_t>(taps_.size())); });
  }
  int axis_ = 1, planes_ = 0, plane_ = 0;
  ConvolutionWindow window_;
  Shape shape_;  // the shape for which taps_ was computed
  std::vector<int32_t> taps_;
};

}  // namespace

void addIm2col(LayerRegistry& r) { r.add<Im2col>("Im2col", "the values under a kernel's taps as channels"); }

}  // namespace crema::layers
