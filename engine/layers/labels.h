// Class numbers beside scores: what Accuracy and SoftmaxWithLoss have in common.
#pragma once
#include "layers/layer.h"

namespace crema {

// Scores [outer][classes][inner] around the class axis, one label per (outer, inner).
struct LabelGrid {
  int outer = 0, classes = 0, inner = 0;

  LabelGrid() = default;
  LabelGrid(const Shape& scores, int axis, const Shape& labels)
      : outer(scores.count(0, axis)), classes(scores[axis]), inner(scores.count(axis + 1)) {
    if (int64_t{outer} * inner != labels.count())
      invalid(
          "{} labels for {} predictions: bottom 0 is {} with classes on axis {}, bottom 1 is {}; one label per "
          "prediction is needed",
          labels.count(), int64_t{outer} * inner, scores.brief(), axis, labels.brief());
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
          badData("label {} of item {} is not a class: there are {} classes, 0 to {}; correct the data or num_output",
                  value, o, classes, classes - 1);
        use(static_cast<int64_t>(o) * classes * inner + i, static_cast<int>(value));
      }
  }
};

}  // namespace crema
