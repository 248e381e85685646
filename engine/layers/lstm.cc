// LSTM over T time steps of N streams (Hochreiter & Schmidhuber 1997, with forget gates and without peepholes):
//   a_t = W_xc x_t + b_c + W_hc (k_t h_{t-1}) [+ W_s x_static];  i, f, o = 1 / (1 + exp(-a)), g = tanh(a)
//   c_t = k_t f c_{t-1} + i g;  h_t = o tanh(c_t);  k_t is cont: 0 where a sequence begins, 1 where it goes on
// Backwards through time, dh_t = dtop_t + k_{t+1} W_hc^T da_{t+1}:
//   dc = dh o (1 - tanh(c)^2) + k_{t+1} f_{t+1} dc_{t+1}
//   da: i: dc g i (1 - i)   f: dc c_{t-1} k_t f (1 - f)   o: dh tanh(c) o (1 - o)   g: dc i (1 - g^2)
// (For k other than 0 and 1 Caffe's f line is not the derivative; ours is. No gradient goes to cont.)
//   bottoms     x T x N x ..., cont T x N [, x_static N x ...] [, h_0, c_0 1 x N x H or N x H]
//   tops        h T x N x H [, h_T, c_T 1 x N x H]; the last two of each with expose_hidden: as in Caffe no gradient
//               passes through them, it ends with the batch
//   options     recurrent_param: num_output (H), weight_filler, bias_filler, expose_hidden; debug_info prints nothing
//   parameters  in Caffe's order, gates in the order i, f, o, g: W_xc 4H x I, b_c 4H, [W_s 4H x S,] W_hc 4H x H
//
// Without expose_hidden a batch starts with the state in which the batch before left its streams, zero in the first, as
// in Caffe. "Before" means the same rank's step before, whoever computes it: each rank that shares this object has its
// own state, so that the model does not depend on the number of workers. State is not carried
//   - where batches are dealt out: scoring, and tests during training, start each at zero, or the figures would depend
//     on who computed what (Caffe carries on over test batches, and from one test to the next);
//   - over a snapshot, which as in Caffe holds none: a resumed run is exact where sentences do not cross batches, and
//     says so otherwise. Storing it would need every rank's state in worker 0's file;
//   - to a batch with another N.
// Cost: one product for all x, one N x H x 4H per step; 10 T N H values kept for the way back.
#include <cmath>
#include <map>

#include "base/log.h"
#include "layers/builtin.h"

namespace crema {
namespace {

template <class T>
T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

class Lstm : public Layer {
 public:
  Lstm(const caffe::LayerParameter& p, const LayerContext& c)
      : Layer(p, c),
        exposed_(p.recurrent_param().expose_hidden()),
        gates_(c.dtype),
        fixed_(c.dtype),
        recurrent_(c.dtype),
        cell_(c.dtype),
        entering_(c.dtype),
        start_{-1, Blob(c.dtype), Blob(c.dtype)} {}
  Arity arity() const override { return exposed_ ? Arity{4, 5, 3, 3} : Arity{2, 3, 1, 1}; }
  bool allowsForceBackward(int bottom) const override { return bottom == 0 || (bottom == 2 && hasStatic_); }

 protected:
  void configure(const Blobs& bottom, const Blobs&) override {
    const auto& p = param_.recurrent_param();
    if (p.num_output() == 0 || p.num_output() > INT32_MAX / 4)
      invalid("num_output must be given, positive and below 2^29, not {}", p.num_output());
    hidden_ = static_cast<int>(p.num_output());
    hasStatic_ = bottom.size() == (exposed_ ? 5u : 3u);
    checkAxes(bottom);
    inputs_ = bottom[0]->shape().count(2);
    addParam(Shape{4 * hidden_, inputs_}, p.weight_filler());
    addParam(Shape{4 * hidden_}, p.bias_filler());
    if (hasStatic_) {
      fixedInputs_ = bottom[2]->shape().count(1);
      addParam(Shape{4 * hidden_, fixedInputs_}, p.weight_filler());
    }
    addParam(Shape{4 * hidden_, hidden_}, p.weight_filler());
  }

  void reshape(const Blobs& bottom, const Blobs& top) override {
    checkAxes(bottom);
    const Shape& x = bottom[0]->shape();
    if (x.count(2) != inputs_)
      invalid("the bottom is {}: {} inputs a step, the weights were made for {}", x.brief(), x.count(2), inputs_);
    if (hasStatic_ && bottom[2]->shape().count(1) != fixedInputs_)
      invalid("the static bottom is {}: {} inputs, the weights were made for {}", bottom[2]->shape().brief(),
              bottom[2]->shape().count(1), fixedInputs_);
    steps_ = x[0], streams_ = x[1];
    const Shape state{1, streams_, hidden_};
    for (size_t i = bottom.size() - (exposed_ ? 2 : 0); i < bottom.size(); ++i)
      if (!(bottom[i]->shape() == state || bottom[i]->shape() == Shape{streams_, hidden_}))
        invalid("bottom {} is a state of {} streams and must be {}, not {}", i, streams_, state.brief(),
                bottom[i]->shape().brief());
    top[0]->reshape(Shape{steps_, streams_, hidden_});
    for (size_t i = 1; i < top.size(); ++i) top[i]->reshape(state);
    gates_.reshape(Shape{steps_, streams_, 4 * hidden_});
    cell_.reshape(top[0]->shape());
    entering_.reshape(top[0]->shape());
    recurrent_.reshape(Shape{streams_, 4 * hidden_});
    if (hasStatic_) fixed_.reshape(recurrent_.shape());
    start_.h.reshape(state), start_.c.reshape(state);
  }

  void compute(const Blobs& bottom, const Blobs& top) override {
    takeState(bottom);
    withType(context().dtype, [&]<class T>() {
      const kernels::IpShape in{steps_ * streams_, inputs_, 4 * hidden_}, back{streams_, hidden_, 4 * hidden_};
      kernels::ipForward<T>(kernels(), in, bottom[0]->data<T>(), w<T>(0), w<T>(1), gates_.mutableData<T>());
      if (hasStatic_)
        kernels::ipForward<T>(kernels(), {streams_, fixedInputs_, 4 * hidden_}, bottom[2]->data<T>(), w<T>(2), nullptr,
                              fixed_.mutableData<T>());
      T* h = top[0]->mutableData<T>();
      cell_.mutableData<T>();  // memory comes with the first use, which several lanes must not make
      for (int t = 0; t < steps_; ++t) {
        const T *before = t ? h + at(t - 1) : start_.h.data<T>(), *cont = bottom[1]->data<T>() + row(t);
        T* entering = entering_.mutableData<T>() + at(t);
        for (int64_t k = 0; k < at(1); ++k) entering[k] = cont[k / hidden_] * before[k];
        kernels::ipForward<T>(kernels(), back, entering, w<T>(last()), nullptr, recurrent_.mutableData<T>());
        kernels().pool().run(streams_, [&](int n, int) { step<T>(t, n, cont[n], h + at(t, n)); });
      }
    });
    keepState(top);
  }

  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (down[1]) invalid("LSTM has no gradient for cont (bottom 1); remove propagate_down there");
    withType(context().dtype, [&]<class T>() {
      throughTime<T>(*top[0], bottom[1]->data<T>());
      const kernels::IpShape in{steps_ * streams_, inputs_, 4 * hidden_};
      const kernels::IpShape fixed{streams_, fixedInputs_, 4 * hidden_}, back{in.n, hidden_, 4 * hidden_};
      const T* da = gates_.diff<T>();
      if (paramPropagates(0)) kernels::ipBackwardWeights<T>(kernels(), in, bottom[0]->data<T>(), da, dw<T>(0), true);
      if (paramPropagates(1)) kernels::ipBackwardBias<T>(kernels(), in, da, dw<T>(1), true);
      if (hasStatic_ && paramPropagates(2))
        kernels::ipBackwardWeights<T>(kernels(), fixed, bottom[2]->data<T>(), fixed_.diff<T>(), dw<T>(2), true);
      if (paramPropagates(last()))
        kernels::ipBackwardWeights<T>(kernels(), back, entering_.data<T>(), da, dw<T>(last()), true);
      if (down[0]) kernels::ipBackwardData<T>(kernels(), in, da, w<T>(0), bottom[0]->mutableDiff<T>());
      if (hasStatic_ && down[2])
        kernels::ipBackwardData<T>(kernels(), fixed, fixed_.diff<T>(), w<T>(2), bottom[2]->mutableDiff<T>());
    });
    for (size_t i = hasStatic_ ? 3 : 2; i < bottom.size(); ++i)
      if (down[i]) bottom[i]->fillDiff(0);
  }

 private:
  struct State {
    int64_t step;  // the one that left it
    Blob h, c;     // 1 x N x H
  };

  int64_t row(int t) const { return int64_t{t} * streams_; }
  int64_t at(int t, int n = 0) const { return (row(t) + n) * hidden_; }
  int last() const { return hasStatic_ ? 3 : 2; }
  template <class T>
  const T* w(int i) const {
    return params()[static_cast<size_t>(i)]->template data<T>();
  }
  template <class T>
  T* dw(int i) {
    return params()[static_cast<size_t>(i)]->template mutableDiff<T>();
  }

  void checkAxes(const Blobs& bottom) const {
    const Shape &x = bottom[0]->shape(), &cont = bottom[1]->shape();
    if (x.axes() < 3) invalid("bottom 0 must be steps x streams x inputs, it is {}", x.brief());
    if (cont.axes() != 2 || cont[0] != x[0] || cont[1] != x[1])
      invalid("bottom 1 (cont) must be {}x{} like the first axes of bottom 0, it is {}", x[0], x[1], cont.brief());
    if (hasStatic_ && (bottom[2]->shape().axes() < 2 || bottom[2]->shape()[0] != x[1]))
      invalid("bottom 2 (static) must be {} streams x inputs, it is {}", x[1], bottom[2]->shape().brief());
  }

  void takeState(const Blobs& bottom) {
    if (exposed_) {
      start_.h.copyDataFrom(*bottom[bottom.size() - 2]);
      start_.c.copyDataFrom(*bottom[bottom.size() - 1]);
      return;
    }
    const auto found = states_.find(context().run->rank);
    const int64_t step = context().run->step;
    if (found != states_.end() && found->second.h.shape() == start_.h.shape() &&
        (found->second.step == step || found->second.step + 1 == step)) {
      start_.h.copyDataFrom(found->second.h);
      start_.c.copyDataFrom(found->second.c);
      return;
    }
    start_.h.fillData(0), start_.c.fillData(0);
    if (!training() || context().data->dealt || step == 0 || warned_) return;
    for (int n = 0; n < streams_; ++n) warned_ = warned_ || bottom[1]->dataAt(n) != 0;
    if (warned_)
      LOG_WARNING(
          "{}: batch {} goes on with sentences of the batch before, which is not known here; it starts from zero, as "
          "in Caffe. A run resumes exactly when every batch begins with cont 0",
          label(), step);
  }

  void keepState(const Blobs& top) {
    if (exposed_) return copyState(*top[0], *top[1], *top[2]);
    if (context().data->scoring || context().data->dealt) return;
    const State none{0, Blob(context().dtype), Blob(context().dtype)};
    State& kept = states_.try_emplace(context().run->rank, none).first->second;
    kept.step = context().run->step;
    kept.h.reshape(start_.h.shape()), kept.c.reshape(start_.c.shape());
    copyState(*top[0], kept.h, kept.c);
  }
  void copyState(const Blob& top, Blob& h, Blob& c) const {
    if (steps_ == 0) return h.copyDataFrom(start_.h), c.copyDataFrom(start_.c);
    withType(context().dtype, [&]<class T>() {
      std::copy_n(top.data<T>() + at(steps_ - 1), at(1), h.mutableData<T>());
      std::copy_n(cell_.data<T>() + at(steps_ - 1), at(1), c.mutableData<T>());
    });
  }

  // gates: in W_xc x + b_c, out i, f, o, g.
  template <class T>
  void step(int t, int n, T cont, T* h) {
    const int H = hidden_;
    T *a = gates_.mutableData<T>() + 4 * at(t, n), *c = cell_.mutableData<T>() + at(t, n);
    const T *r = recurrent_.data<T>() + 4 * at(0, n), *s = hasStatic_ ? fixed_.data<T>() + 4 * at(0, n) : nullptr;
    const T* before = t ? cell_.data<T>() + at(t - 1, n) : start_.c.data<T>() + at(0, n);
    for (int k = 0; k < 4 * H; ++k) {
      const T sum = a[k] + r[k] + (s ? s[k] : T(0));
      a[k] = k < 3 * H ? sigmoid(sum) : std::tanh(sum);
    }
    for (int k = 0; k < H; ++k) {
      c[k] = cont * a[H + k] * before[k] + a[k] * a[3 * H + k];
      h[k] = a[2 * H + k] * std::tanh(c[k]);
    }
  }

  // Gradients of the gates' sums into gates_.diff, summed over time into fixed_.diff.
  template <class T>
  void throughTime(const Blob& top, const T* cont) {
    Blob fromLater(start_.h.shape(), context().dtype), ofCell(start_.h.shape(), context().dtype);
    T *later = fromLater.mutableData<T>(), *dc = ofCell.mutableData<T>();
    const T* dtop = top.diff<T>();
    gates_.mutableDiff<T>();  // as in compute()
    for (int t = steps_ - 1; t >= 0; --t) {
      const T* k = cont + row(t);
      kernels().pool().run(
          streams_, [&](int n, int) { stepBack<T>(t, n, k[n], dtop + at(t, n), later + at(0, n), dc + at(0, n)); });
      if (t == 0) break;
      kernels::ipBackwardData<T>(kernels(), {streams_, hidden_, 4 * hidden_}, gates_.diff<T>() + 4 * at(t),
                                 w<T>(last()), later);
      for (int64_t i = 0; i < at(1); ++i) later[i] *= k[i / hidden_];
    }
    if (!hasStatic_) return;
    fixed_.fillDiff(0);
    for (int t = 0; t < steps_; ++t)
      kernels::add<T>(kernels(), 4 * at(1), fixed_.diff<T>(), gates_.diff<T>() + 4 * at(t), fixed_.mutableDiff<T>());
  }

  // dc: in the gradient that later steps have for c_t, out what this one has for c_{t-1}.
  template <class T>
  void stepBack(int t, int n, T cont, const T* dtop, const T* later, T* dc) {
    const int H = hidden_;
    const T *a = gates_.data<T>() + 4 * at(t, n), *c = cell_.data<T>() + at(t, n);
    const T* before = t ? cell_.data<T>() + at(t - 1, n) : start_.c.data<T>() + at(0, n);
    T* da = gates_.mutableDiff<T>() + 4 * at(t, n);
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

  const bool exposed_;
  bool hasStatic_ = false, warned_ = false;
  int hidden_ = 0, inputs_ = 0, fixedInputs_ = 0, steps_ = 0, streams_ = 0;
  Blob gates_;      // T x N x 4H: i, f, o, g; diff: of their sums
  Blob fixed_;      // N x 4H: W_s x_static; diff: summed over time
  Blob recurrent_;  // N x 4H: W_hc of one step
  Blob cell_;       // T x N x H: c
  Blob entering_;   // T x N x H: k h of the step before
  State start_;
  std::map<int, State> states_;  // by rank
};

}  // namespace

void addLSTM(LayerRegistry& r) { r.add<Lstm>("LSTM", "long short-term memory over time steps"); }

}  // namespace crema
