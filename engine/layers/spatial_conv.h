// Convolution over any number of spatial axes, on the kernels for two: what Convolution and Deconvolution share.
//
// Up to two axes go to the kernels as they are. With more, an image at a time: for each of the P output positions on
// the leading axes, the planes under its K taps become channels, ic K of them, which is the order of the weights
// oc x ic/groups x K x kh x kw; the rest is a convolution of P pictures. Cost: a copy of K P / (leading sizes) images.
#pragma once
#include "kernels/kernels.h"
#include "layers/window.h"
#include "tensor/blob.h"

namespace crema::layers {

class SpatialConv {
 public:
  explicit SpatialConv(DType dtype) : gathered_(dtype), pictures_(dtype) {}
  // x: n x ic x in..., y: n x oc x out..., both of the convolution (a Deconvolution's top is its x).
  void reshape(const ConvolutionWindow& window, int n, int ic, int oc, int groups, const std::vector<int>& in,
               const std::vector<int>& out);

  bool direct() const { return direct_; }
  template <class T>
  void forward(kernels::Context&, const T* x, const T* w, const T* bias, T* y);
  // Where it is direct.
  void forward(kernels::Context& c, const float* x, const float* w, const float* bias, float* y,
               const kernels::Epilogue<float>& then) {
    kernels::convForward<float>(c, shape_, x, w, bias, y, then);
  }
  template <class T>
  void backwardData(kernels::Context&, const T* dy, const T* w, T* dx);
  template <class T>
  void backwardWeights(kernels::Context&, const T* x, const T* dy, T* dw);  // adds

 private:
  int64_t inImage() const { return int64_t{ic_} * leading_ * shape_.h * shape_.w; }
  int64_t outImage() const { return int64_t{shape_.oc} * positions_ * shape_.oh() * shape_.ow(); }
  template <class T>
  void gather(kernels::Context&, const T* x);
  template <class T>
  void scatter(kernels::Context&, T* dx);
  template <class T>
  void transpose(kernels::Context&, const T* from, T* to, int rows, int columns) const;

  bool direct_ = true;
  int n_ = 0, ic_ = 0, leading_ = 1, positions_ = 1, k_ = 1;
  std::vector<int32_t> taps_{0};
  kernels::ConvShape shape_{};  // of the two last axes: all images (direct), or one as P pictures
  Blob gathered_, pictures_;    // P x ic K x h x w; P x oc x oh x ow
};

// dbias[c] += sum over items and positions of d[item][c][position].
template <class T>
void addChannelSums(kernels::Context&, int items, int channels, int positions, const T* d, T* dbias);

}  // namespace crema::layers
