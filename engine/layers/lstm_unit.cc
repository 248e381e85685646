// LSTMUnit: one time step of an LSTM from the sums of its gates a (i, f, o, g of H each), k is cont:
//   i, f, o = 1 / (1 + exp(-a)), g = tanh(a);  c = k f c_before + i g;  h = o tanh(c)
//   d = dh o (1 - tanh(c)^2) + dc;  dc_before = d k f
//   da: i: d g i (1 - i)   f: d c_before k f (1 - f)   o: dh tanh(c) o (1 - o)   g: d i (1 - g^2)
// (For k other than 0 and 1 Caffe's f line is not the derivative; ours is. No gradient goes to cont.)
//   bottoms  c_before 1 x N x H, a 1 x N x 4H, cont 1 x N;  tops  c, h 1 x N x H
#include <cmath>

#include "layers/builtin.h"

namespace crema::layers {
namespace {

class LstmUnit : public Layer {
 public:
  LstmUnit(const caffe::LayerParameter& p, const LayerContext& c) : Layer(p, c), gates_(c.dtype) {}
  Arity arity() const override { return {3, 3, 2, 2}; }
  const char* withoutGradient(int bottom) const override { return bottom < 2 ? nullptr : "cont"; }

 protected:
  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape &c = bottom[0]->shape(), &a = bottom[1]->shape(), &k = bottom[2]->shape();
    if (c.axes() != 3 || c[0] != 1) invalid("bottom 0 (the cell) must be 1 x streams x hidden, it is {}", c.brief());
    const Shape gates{1, c[1], Shape{4, c[2]}.count()};
    if (!(a == gates))
      invalid("bottom 1 (the gates) must be {}, four times bottom 0, it is {}", gates.brief(), a.brief());
    if (!(k == Shape{1, c[1]})) invalid("bottom 2 (cont) must be 1x{}, it is {}", c[1], k.brief());
    streams_ = c[1], hidden_ = c[2];
    gates_.reshape(a);
    for (Blob* t : top) t->reshape(c);
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      const T *before = bottom[0]->data<T>(), *sums = bottom[1]->data<T>(), *cont = bottom[2]->data<T>();
      T *gates = gates_.mutableData<T>(), *cells = top[0]->mutableData<T>(), *hiddens = top[1]->mutableData<T>();
      kernels().pool().run(streams_, [&](int n, int) {
        const int64_t at = int64_t{n} * hidden_, H = hidden_;
        T *a = gates + 4 * at, *c = cells + at, *h = hiddens + at;
        for (int64_t k = 0; k < 4 * H; ++k) {
          const T sum = sums[4 * at + k];
          a[k] = k < 3 * H ? T(1) / (T(1) + std::exp(-sum)) : std::tanh(sum);
        }
        for (int64_t k = 0; k < H; ++k) {
          c[k] = cont[n] * a[H + k] * before[at + k] + a[k] * a[3 * H + k];
          h[k] = a[2 * H + k] * std::tanh(c[k]);
        }
      });
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0] && !down[1]) return;
    withType(context().dtype, [&]<class T>() {
      T *dBefore = down[0] ? bottom[0]->mutableDiff<T>() : nullptr,
        *dGates = down[1] ? bottom[1]->mutableDiff<T>() : nullptr;
      // allocates memory, which lanes must not do
      top[0]->diff<T>(), top[1]->diff<T>(), gates_.data<T>(), bottom[0]->data<T>(), bottom[2]->data<T>();
      kernels().pool().run(streams_, [&](int n, int) { stepBack<T>(n, bottom, top, dBefore, dGates); });
    });
  }

 private:
  template <class T>
  void stepBack(int n, const Blobs& bottom, const Blobs& top, T* dBefore, T* dGates) const {
    const int64_t at = int64_t{n} * hidden_, H = hidden_;
    const T *a = gates_.data<T>() + 4 * at, *before = bottom[0]->data<T>() + at;
    const T *dc = top[0]->diff<T>() + at, *dh = top[1]->diff<T>() + at, cont = bottom[2]->data<T>()[n];
    for (int64_t k = 0; k < H; ++k) {
      const T i = a[k], f = a[H + k], o = a[2 * H + k], g = a[3 * H + k];
      const T squashed = std::tanh(cont * f * before[k] + i * g);  // of c, which may have been overwritten in place
      const T d = dh[k] * o * (T(1) - squashed * squashed) + dc[k];
      if (dBefore) dBefore[at + k] = d * cont * f;
      if (!dGates) continue;
      T* da = dGates + 4 * at + k;
      da[0] = d * g * i * (T(1) - i);
      da[H] = d * before[k] * cont * f * (T(1) - f);
      da[2 * H] = dh[k] * squashed * o * (T(1) - o);
      da[3 * H] = d * i * (T(1) - g * g);
    }
  }
  int streams_ = 0, hidden_ = 0;
  Blob gates_;  // N x 4H: i, f, o, g
};

}  // namespace

void addLSTMUnit(LayerRegistry& r) { r.add<LstmUnit>("LSTMUnit", "one time step of an LSTM"); }

}  // namespace crema::layers
