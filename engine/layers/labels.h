// What layers with labels share: class numbers beside scores, and the divisor of a loss.
#pragma once
#include <algorithm>
#include <vector>

#include "layers/layer.h"

namespace crema::layers {

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
    const T* values = labels.data<T>();
    for (int o = 0; o < outer; ++o)
      for (int i = 0; i < inner; ++i)
        if (const int label = classOf(values[o * inner + i], options, o); label >= 0)
          use(static_cast<int64_t>(o) * classes * inner + i, label);
  }
  // The same as a vector: the class of every position, -1 where the label is ignored.
  template <class T, class Options>
  std::vector<int> list(const Blob& labels, const Options& options) const {
    const T* values = labels.data<T>();
    std::vector<int> all(static_cast<size_t>(labels.count()));
    for (int o = 0, k = 0; o < outer; ++o)
      for (int i = 0; i < inner; ++i, ++k) all[static_cast<size_t>(k)] = classOf(values[k], options, o);
    return all;
  }

 private:
  template <class T, class Options>
  int classOf(T label, const Options& options, int o) const {
    if (options.has_ignore_label() && label == static_cast<T>(options.ignore_label())) return -1;
    if (!(label >= 0 && label < static_cast<T>(classes)))
      notAClass(static_cast<double>(label), static_cast<int>(int64_t{o} * items / std::max(outer, items)));
    return static_cast<int>(label);
  }
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

// The second top of a loss layer, the probabilities, has loss weight 0 unless loss_weight is set.
inline void firstTopIsTheLoss(caffe::LayerParameter& p, size_t tops) {
  if (tops > 1 && p.loss_weight_size() == 0) p.add_loss_weight(1);
  if (tops > 1 && p.loss_weight_size() == 1) p.add_loss_weight(0);
}

}  // namespace crema::layers
