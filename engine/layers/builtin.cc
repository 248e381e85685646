#include "layers/builtin.h"

namespace crema {

const LayerRegistry& builtinLayers() {
  static const LayerRegistry registry = [] {
    LayerRegistry r;
    addAccuracy(r);
    addConcat(r);
    addConvolution(r);
    addDropout(r);
    addDummyData(r);
    addEmbed(r);
    addFlatten(r);
    addInnerProduct(r);
    addInput(r);
    addLRN(r);
    addLSTM(r);
    addPooling(r);
    addRecordData(r);
    addReLU(r);
    addSilence(r);
    addSoftmax(r);
    addSoftmaxWithLoss(r);
    addSplit(r);
    return r;
  }();
  return registry;
}

}  // namespace crema
