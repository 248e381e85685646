// Class numbers beside scores, and what a loss is divided by: what the layers with labels have in common.
#pragma once
#include <algorithm>

#include "layers/layer.h"

namespace crema {

// Scores [outer][classes][inner] around the class axis, one label per (outer, inner).
struct LabelGrid {
  int outer = 0, classes = 0, inner = 0, items = 1;

  LabelGrid() = default;
  LabelGrid(const Shape& scores, int axis, const Shape& labels)
      : outer(scores.count(0, axis)),
        classes(scores[axis]),
        inner(scores.count(axis + 1)),
        items(std::max(1, scores[0])) {
    if (int64_t{outer} * inner != labels.count())
      invalid(
          "{} labels for {} predictions: bottom 0 is {} with classes on axis {}, bottom 1 is {}; one label per "
          "prediction is needed",
          labels.count(), int64_t{outer} * inner, scores.brief(), axis, labels.brief());
  }
  // All values of an item are its scores, whatever their axes.
  static LabelGrid ofItems(const Shape& scores, const Shape& labels) {
    if (scores.axes() == 0) invalid("bottom 0 must have items on axis 0, it is a scalar");
    return LabelGrid(Shape{scores[0], scores.count(1)}, 1, labels);
  }

  // Calls use(index of class 0's score, label) for every label that is not ignored; kData for one that is no class.
  // `options`: a message with ignore_label.
  template <class T, class Options, class Use>
  void forEach(const Blob& labels, const Options& options, Use use) const {
    for (int o = 0; o < outer; ++o)
      for (int i = 0; i < inner; ++i) {
        const T value = labels.data<T>()[o * inner + i];
        if (options.has_ignore_label() && value == static_cast<T>(options.ignore_label())) continue;
        if (!(value >= 0 && value < static_cast<T>(classes)))
          notAClass(static_cast<double>(value), static_cast<int>(int64_t{o} * items / std::max(outer, items)));
        use(static_cast<int64_t>(o) * classes * inner + i, static_cast<int>(value));
      }
  }

 private:
  [[noreturn]] void notAClass(double label, int item) const {
    badItem(item, "label {} of item {} is not a class: there are {} classes, 0 to {}; correct the data or num_output",
            label, item, classes, classes - 1);
  }
};

// loss_param.normalization: FULL all positions, VALID those not ignored, BATCH_SIZE `batch`, NONE 1; at least 1. The
// old `normalize` means VALID (true) or BATCH_SIZE (false) where `normalization` is not given; neither: `otherwise`.
inline double lossDivisor(const caffe::LossParameter& p, caffe::LossParameter::NormalizationMode otherwise, double full,
                          double valid, double batch) {
  auto mode = p.has_normalization() ? p.normalization() : otherwise;
  if (!p.has_normalization() && p.has_normalize())
    mode = p.normalize() ? caffe::LossParameter::VALID : caffe::LossParameter::BATCH_SIZE;
  const double n = mode == caffe::LossParameter::FULL         ? full
                   : mode == caffe::LossParameter::VALID      ? valid
                   : mode == caffe::LossParameter::BATCH_SIZE ? batch
                                                              : 1;
  return std::max(1.0, n);
}

// A loss layer's further top, the probabilities, is no loss unless loss_weight says so.
inline void firstTopIsTheLoss(caffe::LayerParameter& p, size_t tops) {
  if (tops > 1 && p.loss_weight_size() == 0) p.add_loss_weight(1);
  if (tops > 1 && p.loss_weight_size() == 1) p.add_loss_weight(0);
}

}  // namespace crema
