// Base classes of losses: from predictions and labels to one number, which layer.h weights.
#pragma once
#include "layers/labels.h"
#include "layers/layer.h"

namespace crema::layers {

// Bottom 0 are predictions and get a gradient, bottom 1 are targets; a missing top is added.
class LossLayer : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, 2, 1, 1, false, true}; }
  bool isLoss() const override { return true; }
  const char* withoutGradient(int bottom) const override { return bottom == 0 ? nullptr : "labels"; }
};

// Scores N x ..., all values of an item being its classes, and N class numbers; the mean over the N items.
class ItemLossLayer : public LossLayer {
 public:
  using LossLayer::LossLayer;

 protected:
  void reshape(const Blobs& bottom, const Blobs& top) override {
    grid_ = LabelGrid::ofItems(bottom[0]->shape(), bottom[1]->shape());
    top[0]->reshape(Shape{});
  }
  int items() const { return std::max(1, grid_.outer); }
  LabelGrid grid_;
};

// A softmax over one axis of the scores, and a class number for each of the others' positions. A second top: the
// softmax.
class SoftmaxLossLayer : public LossLayer {
 public:
  SoftmaxLossLayer(const caffe::LayerParameter& p, const LayerContext& c) : LossLayer(p, c), prob_(c.dtype) {}
  Arity arity() const override { return {2, 2, 1, 2, false, true}; }

 protected:
  void useAxis(const Blobs& bottom, const Blobs& top, int axis) {
    axis_ = bottom[0]->shape().canonicalAxis(axis);
    firstTopIsTheLoss(param_, top.size());
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape& s = bottom[0]->shape();
    grid_ = LabelGrid(s, axis_, bottom[1]->shape());
    prob_.reshape(s);
    top[0]->reshape(Shape{});
    if (top.size() > 1) top[1]->reshape(s);
  }
  template <class T>
  void softmax(const Blobs& bottom, const Blobs& top) {
    kernels::softmax<T>(kernels(), grid_.outer, grid_.classes, grid_.inner, bottom[0]->data<T>(),
                        prob_.mutableData<T>());
    if (top.size() > 1) top[1]->copyDataFrom(prob_);
  }
  // By loss_param.normalization, default VALID: the positions whose label is not ignored.
  double divisor() const {
    return lossDivisor(param_.loss_param(), caffe::LossParameter::VALID, static_cast<double>(grid_.outer) * grid_.inner,
                       static_cast<double>(valid_), grid_.outer);
  }

  Blob prob_;
  int axis_ = 1;
  LabelGrid grid_;
  int64_t valid_ = 0;
};

}  // namespace crema::layers
