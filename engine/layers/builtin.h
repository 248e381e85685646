// The layers of this library. A new file is one line here; its function add<Name> puts its types into a registry.
#pragma once
#include "layers/registry.h"

// clang-format off: one a line, in the alphabet's order
#define CREMA_LAYERS(X) \
  X(AbsVal)             \
  X(Accuracy)           \
  X(BatchNorm)          \
  X(Bias)               \
  X(BNLL)               \
  X(Clip)               \
  X(Concat)             \
  X(Convolution)        \
  X(Dropout)            \
  X(DummyData)          \
  X(Eltwise)            \
  X(ELU)                \
  X(Embed)              \
  X(Exp)                \
  X(Flatten)            \
  X(InnerProduct)       \
  X(Input)              \
  X(Log)                \
  X(LRN)                \
  X(LSTM)               \
  X(MVN)                \
  X(Pooling)            \
  X(Power)              \
  X(PReLU)              \
  X(RecordData)         \
  X(Reduction)          \
  X(ReLU)               \
  X(Scale)              \
  X(Sigmoid)            \
  X(Silence)            \
  X(Softmax)            \
  X(SoftmaxWithLoss)    \
  X(Split)              \
  X(Swish)              \
  X(TanH)               \
  X(Threshold)
// clang-format on

namespace crema {

Shape toShape(const caffe::BlobShape& shape);

#define CREMA_DECLARE_LAYER(NAME) void add##NAME(LayerRegistry&);
CREMA_LAYERS(CREMA_DECLARE_LAYER)
#undef CREMA_DECLARE_LAYER

}  // namespace crema
