// The layers of this library. A new file is one line here; its function add<Name> puts its types into a registry.
#pragma once
#include "layers/registry.h"

// clang-format off: one per line, in alphabetical order
#define CREMA_LAYERS(X)      \
  X(AbsVal)                  \
  X(Accuracy)                \
  X(ArgMax)                  \
  X(BatchNorm)               \
  X(BatchReindex)            \
  X(Bias)                    \
  X(BNLL)                    \
  X(Clip)                    \
  X(Concat)                  \
  X(ContrastiveLoss)         \
  X(Convolution)             \
  X(CoSData)                 \
  X(Crop)                    \
  X(Data)                    \
  X(Deconvolution)           \
  X(Dropout)                 \
  X(DummyData)               \
  X(Eltwise)                 \
  X(ELU)                     \
  X(Embed)                   \
  X(EuclideanLoss)           \
  X(Exp)                     \
  X(Filter)                  \
  X(Flatten)                 \
  X(HDF5Data)                \
  X(HDF5Output)              \
  X(HingeLoss)               \
  X(Im2col)                  \
  X(ImageData)               \
  X(InfogainLoss)            \
  X(InnerProduct)            \
  X(Input)                   \
  X(Log)                     \
  X(LRN)                     \
  X(LSTM)                    \
  X(LSTMUnit)                \
  X(MemoryData)              \
  X(MultinomialLogisticLoss) \
  X(MVN)                     \
  X(Parameter)               \
  X(Pooling)                 \
  X(Power)                   \
  X(PReLU)                   \
  X(Python)                  \
  X(Reduction)               \
  X(ReLU)                    \
  X(Reshape)                 \
  X(RNN)                     \
  X(Scale)                   \
  X(Sigmoid)                 \
  X(SigmoidCrossEntropyLoss) \
  X(Silence)                 \
  X(Slice)                   \
  X(Softmax)                 \
  X(SoftmaxWithLoss)         \
  X(Split)                   \
  X(SPP)                     \
  X(Swish)                   \
  X(TanH)                    \
  X(Threshold)               \
  X(Tile)                    \
  X(WindowData)
// clang-format on

namespace crema::layers {

Shape toShape(const caffe::BlobShape& shape);

#define CREMA_DECLARE_LAYER(NAME) void add##NAME(LayerRegistry&);
CREMA_LAYERS(CREMA_DECLARE_LAYER)
#undef CREMA_DECLARE_LAYER

}  // namespace crema::layers
