// One line per layer file: each adds its types to a registry (builtin.cc lists them).
#pragma once
#include "layers/registry.h"

namespace crema {

Shape toShape(const caffe::BlobShape& shape);

void addAccuracy(LayerRegistry&);
void addConcat(LayerRegistry&);
void addConvolution(LayerRegistry&);
void addDropout(LayerRegistry&);
void addDummyData(LayerRegistry&);
void addEmbed(LayerRegistry&);
void addFlatten(LayerRegistry&);
void addInnerProduct(LayerRegistry&);
void addInput(LayerRegistry&);
void addLRN(LayerRegistry&);
void addLSTM(LayerRegistry&);
void addPooling(LayerRegistry&);
void addRecordData(LayerRegistry&);  // Data, MemoryData, CoSData
void addReLU(LayerRegistry&);
void addSilence(LayerRegistry&);
void addSoftmax(LayerRegistry&);
void addSoftmaxWithLoss(LayerRegistry&);
void addSplit(LayerRegistry&);

}  // namespace crema
