// RNN over T time steps of N streams (Elman 1990):
//   h_t = tanh(W_xh x_t + b_h + W_hh (k_t h_{t-1}) [+ W_s x_static]);  o_t = tanh(W_ho h_t + b_o)
//   k_t is cont: 0 where a sequence begins, 1 where it goes on
// Backwards: e_t = dtop_t (1 - o_t^2);  da_t = (W_ho^T e_t + k_{t+1} W_hh^T da_{t+1}) (1 - h_t^2); none goes to cont.
//   bottoms     x T x N x ..., cont T x N [, x_static N x ...] [, h_0 1 x N x H or N x H]
//   tops        o T x N x H [, h_T 1 x N x H]; the last of each with expose_hidden
//   options     recurrent_param: num_output (H), weight_filler, bias_filler, expose_hidden; debug_info prints nothing
//   parameters  in Caffe's order: W_xh H x I, b_h H, [W_s H x S,] W_hh H x H, W_ho H x H, b_o H
// State between batches: recurrent.h.
#include <cmath>

#include "layers/builtin.h"
#include "layers/recurrent.h"

namespace crema::layers {
namespace {

class Rnn : public Recurrent {
 public:
  Rnn(const caffe::LayerParameter& p, const LayerContext& c) : Recurrent(p, c, 1, 1), outputs_(c.dtype) {}

 protected:
  void configure(const Blobs& bottom, const Blobs& top) override {
    Recurrent::configure(bottom, top);
    addParam(Shape{hidden_, hidden_}, param_.recurrent_param().weight_filler());
    addParam(Shape{hidden_}, param_.recurrent_param().bias_filler());
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    Recurrent::reshape(bottom, top);
    outputs_.reshape(top[0]->shape());
  }
  const Blob& stateOfSteps(size_t, const Blobs&) const override { return sums_; }

  void compute(const Blobs& bottom, const Blobs& top) override {
    takeState(bottom);
    withType(context().dtype, [&]<class T>() {
      inputSums<T>(bottom);
      T* h = sums_.mutableData<T>();
      for (int t = 0; t < steps_; ++t) {
        recurrentSums<T>(t, t ? h + at(t - 1) : start_[0].data<T>(), bottom[1]->data<T>() + row(t));
        kernels().pool().run(streams_, [&](int n, int) { step<T>(n, h + at(t, n)); });
      }
      T* o = outputs_.mutableData<T>();
      kernels::ipForward<T>(kernels(), outputShape(), h, w<T>(outputWeights()), w<T>(outputWeights() + 1), o);
      kernels().pool().run(steps_, [&](int t, int) {
        for (int64_t i = at(t); i < at(t + 1); ++i) o[i] = std::tanh(o[i]);
      });
    });
    top[0]->copyDataFrom(outputs_);  // a layer above may overwrite its bottom
    keepState(top);
  }

  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    withType(context().dtype, [&]<class T>() {
      throughOutputs<T>(top[0]->diff<T>());
      throughTime<T>(bottom[1]->data<T>());
      gradientOfInputs<T>(down, bottom);
    });
  }

 private:
  int outputWeights() const { return recurrentWeights() + 1; }
  kernels::IpShape outputShape() const { return {steps_ * streams_, hidden_, hidden_}; }

  // h: in W_xh x + b_h, out h.
  template <class T>
  void step(int n, T* h) {
    const T *r = recurrent_.data<T>() + at(0, n), *s = fixedOf<T>(n);
    for (int k = 0; k < hidden_; ++k) h[k] = std::tanh(h[k] + r[k] + (s ? s[k] : T(0)));
  }

  // e into outputs_.diff, W_ho^T e into sums_.diff.
  template <class T>
  void throughOutputs(const T* dtop) {
    const T *o = outputs_.data<T>(), *h = sums_.data<T>();
    T* e = outputs_.mutableDiff<T>();
    kernels().pool().run(steps_, [&](int t, int) {
      for (int64_t i = at(t); i < at(t + 1); ++i) e[i] = dtop[i] * (T(1) - o[i] * o[i]);
    });
    const int weights = outputWeights(), bias = weights + 1;
    if (paramPropagates(weights)) kernels::ipBackwardWeights<T>(kernels(), outputShape(), h, e, dw<T>(weights), true);
    if (paramPropagates(bias)) kernels::ipBackwardBias<T>(kernels(), outputShape(), e, dw<T>(bias), true);
    kernels::ipBackwardData<T>(kernels(), outputShape(), e, w<T>(weights), sums_.mutableDiff<T>());
  }

  // sums_.diff: in W_ho^T e, out da.
  template <class T>
  void throughTime(const T* cont) {
    Blob fromLater(start_[0].shape(), context().dtype);
    T *later = fromLater.mutableData<T>(), *da = sums_.mutableDiff<T>();
    const T* h = sums_.data<T>();
    for (int t = steps_ - 1; t >= 0; --t) {
      for (int64_t i = 0; i < at(1); ++i) {
        const int64_t k = at(t) + i;
        da[k] = (da[k] + later[i]) * (T(1) - h[k] * h[k]);
      }
      if (t > 0) gradientOfBefore<T>(t, cont + row(t), later);
    }
  }

  Blob outputs_;  // T x N x H: o; diff: e
};

}  // namespace

void addRNN(LayerRegistry& r) { r.add<Rnn>("RNN", "a plain recurrent network over time steps"); }

}  // namespace crema::layers
