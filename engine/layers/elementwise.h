// Layers whose top has the shape of bottom 0 and may work in place; and a template for y = f(x), element by element.
#pragma once
#include <optional>
#include <string>
#include <utility>

#include "layers/loops.h"
#include "layers/registry.h"

namespace crema::layers {

// A layer in place keeps a copy of its bottom: later layers may overwrite its top in place too, so its backward pass
// can rely on neither. A layer with a top of its own still has its bottom, and keeps nothing.
class SameShapeLayer : public Layer {
 public:
  SameShapeLayer(const caffe::LayerParameter& p, const LayerContext& c) : Layer(p, c), kept_(c.dtype) {}
  bool allowsInPlace() const override { return true; }

 protected:
  void reshape(const Blobs& bottom, const Blobs& top) override {
    if (top[0] != bottom[0])
      top[0]->reshape(bottom[0]->shape());
    else
      kept_.reshape(bottom[0]->shape());
  }
  // To be called before the top is written to.
  void keepBottom(const Blobs& bottom, const Blobs& top) {
    if (top[0] != bottom[0] || !context().needsBackward) return;
    kept_.copyDataFrom(*bottom[0]);
  }
  Blob& kept() { return kept_; }
  // The values of bottom 0 before the forward pass.
  template <class T>
  const T* bottomBefore(const Blobs& bottom, const Blobs& top) const {
    return top[0] == bottom[0] ? kept_.data<T>() : bottom[0]->data<T>();
  }

 private:
  Blob kept_;
};

// Op is made from the LayerParameter (invalid() where an option is wrong) and has
//   template <class T> T value(T x) const;   y
//   template <class T> T slope(T x) const;   dy/dx
template <class Op>
class Elementwise : public SameShapeLayer {
 public:
  using SameShapeLayer::SameShapeLayer;

 protected:
  void configure(const Blobs&, const Blobs&) override { op_.emplace(param_); }
  void compute(const Blobs& bottom, const Blobs& top) override {
    keepBottom(bottom, top);
    withType(context().dtype, [&]<class T>() {
      const T* x = bottom[0]->data<T>();
      T* y = top[0]->mutableData<T>();
      inPieces(kernels().pool(), bottom[0]->count(), [x, y, op = *op_](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) y[i] = op.template value<T>(x[i]);
      });
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      const T *x = bottomBefore<T>(bottom, top), *dy = top[0]->diff<T>();
      T* dx = bottom[0]->mutableDiff<T>();
      inPieces(kernels().pool(), bottom[0]->count(), [x, dy, dx, op = *op_](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) dx[i] = dy[i] * op.template slope<T>(x[i]);
      });
    });
  }

 private:
  std::optional<Op> op_;
};

template <class Op>
void addElementwise(LayerRegistry& r, const std::string& type, std::string summary) {
  r.add<Elementwise<Op>>(type, std::move(summary));
}

}  // namespace crema::layers
