// Eltwise: bottoms of one shape, element by element. coeff c_i, 1 where none are given:
//   SUM   y = sum_i c_i x_i;      dx_i = c_i dy
//   PROD  y = product of x_i;     dx_i = dy times the product of the other x_j
//   MAX   y = the largest x_i;    dx_i = dy for the bottom that won, 0 for the others. Ties as in Caffe: bottom 1 wins
//                                 over bottom 0, the earlier one among the rest. The first NaN there is wins.
// In place allowed for each, the top being bottom 0 (Caffe's SUM loses bottom 0 then, PROD's gradient is wrong).
// Options (eltwise_param): operation (SUM), coeff (none, or one for each bottom; SUM only), stable_prod_grad without
// effect: dy y / x_i, which is what false asks for, is NaN at x_i = 0 and no faster for two bottoms.
#include <algorithm>

#include "base/log.h"
#include "layers/builtin.h"
#include "layers/elementwise.h"
#include "layers/sum_group.h"

namespace crema::layers {
namespace {

using Op = caffe::EltwiseParameter;

class Eltwise : public SameShapeLayer, public SumLeader {
 public:
  using SameShapeLayer::SameShapeLayer;
  Arity arity() const override { return {2, -1, 1, 1}; }
  bool isStep(const Blobs& bottom, int) const override {
    const auto& c = param_.eltwise_param().coeff();
    return operation() == Op::SUM && bottom.size() == 2 && bottom[0] != bottom[1] &&
           context().dtype == DType::kFloat32 && std::all_of(c.begin(), c.end(), [](float f) { return f == 1; });
  }
  Reads readsBackward() const override {
    const bool reads = operation() == Op::PROD;
    return {reads, reads};
  }
  bool leadsSum(const Blobs& bottom, const Blobs& top) const override {
    return isStep(bottom, 0) && top[0] != bottom[0] && top[0] != bottom[1];
  }
  void forwardSum(const Blobs& bottom, const Blobs& top, float slope) override {
    kernels::addRelu<float>(kernels(), top[0]->count(), slope, bottom[0]->data<float>(), bottom[1]->data<float>(),
                            top[0]->mutableData<float>());
  }
  void backwardSum(const float* dy0, const float* dy1, const Blobs& top, const std::vector<bool>& down,
                   const Blobs& bottom, float slope) override {
    kernels::addReluBackward<float>(kernels(), top[0]->count(), slope, top[0]->data<float>(), dy0, dy1,
                                    bottom[0]->mutableDiff<float>(),
                                    down[1] ? bottom[1]->mutableDiff<float>() : nullptr);
  }

 protected:
  void configure(const Blobs& bottom, const Blobs&) override {
    const auto& p = param_.eltwise_param();
    if (p.coeff_size() && p.coeff_size() != static_cast<int>(bottom.size()))
      invalid("Eltwise Layer takes one coefficient per bottom blob: {} coeff, {} bottoms", p.coeff_size(),
              bottom.size());
    if (p.coeff_size() && p.operation() == Op::PROD)
      invalid("Eltwise layer only takes coefficients for summation; remove coeff, or the operation PROD");
    if (p.coeff_size() && p.operation() == Op::MAX) LOG_WARNING("{}: MAX does not use coeff", label());
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    for (size_t i = 1; i < bottom.size(); ++i)
      if (!(bottom[i]->shape() == bottom[0]->shape()))
        invalid(
            "bottoms must have one shape: bottom[0] is {}, bottom[{}] is {}; see kernel_size, pad and stride below "
            "them",
            bottom[0]->shape().brief(), i, bottom[i]->shape().brief());
    SameShapeLayer::reshape(bottom, top);
    if (operation() == Op::MAX) winner_.resize(static_cast<size_t>(bottom[0]->count()));
  }

  void compute(const Blobs& bottom, const Blobs& top) override {
    if (operation() == Op::PROD) keepBottom(bottom, top);
    withType(context().dtype, [&]<class T>() {
      T* y = top[0]->mutableData<T>();
      const std::vector<const T*> x = dataOf<T>(bottom);
      inPieces(kernels().pool(), bottom[0]->count(), [&](int64_t from, int64_t to) {
        for (size_t k = 1; k < x.size(); ++k) join(k, k == 1 ? x[0] : y, x[k], y, from, to);
      });
    });
  }

  void steps(const Blobs& bottom, int at, kernels::Epilogue<float>* steps) override {
    steps->push_back({.kind = kernels::Step<float>::kAdd, .other = bottom[at ? 0 : 1]->data<float>()});
  }

  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    withType(context().dtype, [&]<class T>() {
      std::vector<const T*> x = dataOf<T>(bottom);
      x[0] = operation() == Op::PROD ? bottomBefore<T>(bottom, top) : nullptr;
      const T* dy = top[0]->diff<T>();
      for (size_t k = bottom.size(); k-- > 0;) {  // bottom 0's gradient may lie where the top's is
        if (!down[k]) continue;
        T* dx = bottom[k]->mutableDiff<T>();
        inPieces(kernels().pool(), bottom[k]->count(),
                 [&](int64_t from, int64_t to) { share(k, x, dy, dx, from, to); });
      }
    });
  }

 private:
  Op::EltwiseOp operation() const { return param_.eltwise_param().operation(); }
  template <class T>
  T coeff(size_t k) const {
    const auto& c = param_.eltwise_param().coeff();
    return c.empty() ? T(1) : static_cast<T>(c[static_cast<int>(k)]);
  }
  // y of bottoms 0 to k from `before`, that of 0 to k - 1.
  template <class T>
  void join(size_t k, const T* before, const T* x, T* y, int64_t from, int64_t to) {
    const T c = coeff<T>(k), first = k == 1 ? coeff<T>(0) : T(1);
    if (operation() == Op::SUM)
      for (int64_t i = from; i < to; ++i) y[i] = first * before[i] + c * x[i];
    else if (operation() == Op::PROD)
      for (int64_t i = from; i < to; ++i) y[i] = before[i] * x[i];
    else if (k == 1)
      larger<true>(1, before, x, y, from, to);
    else
      larger<false>(static_cast<int>(k), before, x, y, from, to);
  }

  // Without branches and with a separate pointer to winners, so that the compiler can vectorise it.
  template <bool kFirst, class T>
  void larger(int k, const T* before, const T* x, T* y, int64_t from, int64_t to) {
    int* const winner = winner_.data();
    for (int64_t i = from; i < to; ++i) {
      const T b = before[i], v = x[i];
      const bool wins = (kFirst ? v >= b : v > b) | ((v != v) & (b == b));
      const int held = kFirst ? 0 : winner[i];
      winner[i] = wins ? k : held;
      y[i] = wins ? v : b;
    }
  }

  template <class T>
  void share(size_t k, const std::vector<const T*>& x, const T* dy, T* dx, int64_t from, int64_t to) const {
    if (operation() == Op::SUM) {
      const T c = coeff<T>(k);
      for (int64_t i = from; i < to; ++i) dx[i] = c * dy[i];
    } else if (operation() == Op::MAX) {
      const int *const winner = winner_.data(), mine = static_cast<int>(k);
      for (int64_t i = from; i < to; ++i) {
        const T d = dy[i];
        dx[i] = winner[i] == mine ? d : T(0);
      }
    } else {
      for (int64_t i = from; i < to; ++i) {
        T others = dy[i];
        for (size_t j = 0; j < x.size(); ++j)
          if (j != k) others *= x[j][i];
        dx[i] = others;
      }
    }
  }

  std::vector<int> winner_;  // MAX: the bottom that gave each element
};

}  // namespace

void addEltwise(LayerRegistry& r) { r.add<Eltwise>("Eltwise", "sum, product or maximum of blobs of one shape"); }

}  // namespace crema::layers
