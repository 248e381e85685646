// The layers of this library. A new file is one line here; its function add<Name> puts its types into a registry.
#pragma once
#include "layers/registry.h"

// clang-format off: one a line, in the alphabet's order
#define CREMA_LAYERS(X)      \
  X(Accuracy)                \
  X(ArgMax)                  \
  X(BatchReindex)            \
  X(Concat)                  \
  X(ContrastiveLoss)         \
  X(Convolution)             \
  X(Crop)                    \
  X(Deconvolution)           \
  X(Dropout)                 \
  X(DummyData)               \
  X(Embed)                   \
  X(EuclideanLoss)           \
  X(Filter)                  \
  X(Flatten)                 \
  X(HingeLoss)               \
  X(Im2col)                  \
  X(InfogainLoss)            \
  X(InnerProduct)            \
  X(Input)                   \
  X(LRN)                     \
  X(LSTM)                    \
  X(LSTMUnit)                \
  X(MultinomialLogisticLoss) \
  X(Parameter)               \
  X(Pooling)                 \
  X(RecordData)              \
  X(ReLU)                    \
  X(Reshape)                 \
  X(RNN)                     \
  X(SigmoidCrossEntropyLoss) \
  X(Silence)                 \
  X(Slice)                   \
  X(Softmax)                 \
  X(SoftmaxWithLoss)         \
  X(SPP)                     \
  X(Split)                   \
  X(Tile)
// clang-format on

namespace crema {

Shape toShape(const caffe::BlobShape& shape);

#define CREMA_DECLARE_LAYER(NAME) void add##NAME(LayerRegistry&);
CREMA_LAYERS(CREMA_DECLARE_LAYER)
#undef CREMA_DECLARE_LAYER

}  // namespace crema
