// LSTM over T time steps of N streams (Hochreiter & Schmidhuber 1997, with forget gates and without peepholes):
//   a_t = W_xc x_t + b_c + W_hc (k_t h_{t-1}) [+ W_s x_static];  i, f, o = 1 / (1 + exp(-a)), g = tanh(a)
//   c_t = k_t f c_{t-1} + i g;  h_t = o tanh(c_t);  k_t is cont: 0 where a sequence begins, 1 where it goes on
// Backwards through time, dh_t = dtop_t + k_{t+1} W_hc^T da_{t+1}:
//   dc = dh o (1 - tanh(c)^2) + k_{t+1} f_{t+1} dc_{t+1}
//   da: i: dc g i (1 - i)   f: dc c_{t-1} k_t f (1 - f)   o: dh tanh(c) o (1 - o)   g: dc i (1 - g^2)
// (For k other than 0 and 1 Caffe's f line is not the derivative; ours is. No gradient goes to cont.)
//   bottoms     x T x N x ..., cont T x N [, x_static N x ...] [, h_0, c_0 1 x N x H or N x H]
//   tops        h T x N x H [, h_T, c_T 1 x N x H]; the last two of each with expose_hidden
//   options     recurrent_param: num_output (H), weight_filler, bias_filler, expose_hidden; debug_info prints nothing
//   parameters  in Caffe's order, gates in the order i, f, o, g: W_xc 4H x I, b_c 4H, [W_s 4H x S,] W_hc 4H x H
// State between batches: recurrent.h.
// Cost: one product for all x, one N x H x 4H per step; 10 T N H values kept for the backward pass.
#include <cmath>

#include "layers/builtin.h"
#include "layers/recurrent.h"

namespace crema::layers {
namespace {

template <class T>
T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

class Lstm : public Recurrent {
 public:
  Lstm(const caffe::LayerParameter& p, const LayerContext& c) : Recurrent(p, c, 2, 4), cell_(c.dtype) {}

 protected:
  void reshape(const Blobs& bottom, const Blobs& top) override {
    Recurrent::reshape(bottom, top);
    cell_.reshape(top[0]->shape());
  }
  const Blob& stateOfSteps(size_t i, const Blobs& top) const override { return i ? cell_ : *top[0]; }

  void compute(const Blobs& bottom, const Blobs& top) override {
    takeState(bottom);
    withType(context().dtype, [&]<class T>() {
      inputSums<T>(bottom);
      T* h = top[0]->mutableData<T>();
      cell_.mutableData<T>();  // allocates memory, which lanes must not do
      for (int t = 0; t < steps_; ++t) {
        const T* cont = bottom[1]->data<T>() + row(t);
        recurrentSums<T>(t, t ? h + at(t - 1) : start_[0].data<T>(), cont);
        kernels().pool().run(streams_, [&](int n, int) { step<T>(t, n, cont[n], h + at(t, n)); });
      }
    });
    keepState(top);
  }

  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    withType(context().dtype, [&]<class T>() {
      throughTime<T>(*top[0], bottom[1]->data<T>());
      gradientOfInputs<T>(down, bottom);
    });
  }

 private:
  // sums_: in W_xc x + b_c, out i, f, o, g.
  template <class T>
  void step(int t, int n, T cont, T* h) {
    const int H = hidden_;
    T *a = sums_.mutableData<T>() + 4 * at(t, n), *c = cell_.mutableData<T>() + at(t, n);
    const T *r = recurrent_.data<T>() + 4 * at(0, n), *s = fixedOf<T>(n);
    const T* before = t ? cell_.data<T>() + at(t - 1, n) : start_[1].data<T>() + at(0, n);
    for (int k = 0; k < 4 * H; ++k) {
      const T sum = a[k] + r[k] + (s ? s[k] : T(0));
      a[k] = k < 3 * H ? sigmoid(sum) : std::tanh(sum);
    }
    for (int k = 0; k < H; ++k) {
      c[k] = cont * a[H + k] * before[k] + a[k] * a[3 * H + k];
      h[k] = a[2 * H + k] * std::tanh(c[k]);
    }
  }

  // Gradients of the gates' sums into sums_.diff.
  template <class T>
  void throughTime(const Blob& top, const T* cont) {
    Blob fromLater(start_[0].shape(), context().dtype), ofCell(start_[0].shape(), context().dtype);
    T *later = fromLater.mutableData<T>(), *dc = ofCell.mutableData<T>();
    const T* dtop = top.diff<T>();
    sums_.mutableDiff<T>(), sums_.data<T>(), cell_.data<T>(), start_[1].data<T>();  // as in compute()
    for (int t = steps_ - 1; t >= 0; --t) {
      const T* k = cont + row(t);
      kernels().pool().run(
          streams_, [&](int n, int) { stepBack<T>(t, n, k[n], dtop + at(t, n), later + at(0, n), dc + at(0, n)); });
      if (t > 0) gradientOfBefore<T>(t, k, later);
    }
  }

  // dc: in the gradient of later steps for c_t, out this step's for c_{t-1}.
  template <class T>
  void stepBack(int t, int n, T cont, const T* dtop, const T* later, T* dc) {
    const int H = hidden_;
    const T *a = sums_.data<T>() + 4 * at(t, n), *c = cell_.data<T>() + at(t, n);
    const T* before = t ? cell_.data<T>() + at(t - 1, n) : start_[1].data<T>() + at(0, n);
    T* da = sums_.mutableDiff<T>() + 4 * at(t, n);
    for (int k = 0; k < H; ++k) {
      const T i = a[k], f = a[H + k], o = a[2 * H + k], g = a[3 * H + k], squashed = std::tanh(c[k]);
      const T dh = dtop[k] + later[k], d = dh * o * (T(1) - squashed * squashed) + dc[k];
      da[k] = d * g * i * (T(1) - i);
      da[H + k] = d * before[k] * cont * f * (T(1) - f);
      da[2 * H + k] = dh * squashed * o * (T(1) - o);
      da[3 * H + k] = d * i * (T(1) - g * g);
      dc[k] = d * cont * f;
    }
  }

  Blob cell_;  // T x N x H: c
};

}  // namespace

void addLSTM(LayerRegistry& r) { r.add<Lstm>("LSTM", "long short-term memory over time steps"); }

}  // namespace crema::layers
