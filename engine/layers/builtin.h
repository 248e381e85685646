// The layers of this library. A new file is one line here; its function add<Name> puts its types into a registry.
#pragma once
#include "layers/registry.h"

// clang-format off: one a line, in the alphabet's order
#define CREMA_LAYERS(X) \
  X(Accuracy)           \
  X(Concat)             \
  X(Convolution)        \
  X(Dropout)            \
  X(DummyData)          \
  X(Embed)              \
  X(Flatten)            \
  X(InnerProduct)       \
  X(Input)              \
  X(LRN)                \
  X(LSTM)               \
  X(Pooling)            \
  X(RecordData)         \
  X(ReLU)               \
  X(Silence)            \
  X(Softmax)            \
  X(SoftmaxWithLoss)    \
  X(Split)
// clang-format on

namespace crema {

Shape toShape(const caffe::BlobShape& shape);

#define CREMA_DECLARE_LAYER(NAME) void add##NAME(LayerRegistry&);
CREMA_LAYERS(CREMA_DECLARE_LAYER)
#undef CREMA_DECLARE_LAYER

}  // namespace crema
