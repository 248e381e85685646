#include "layers/builtin.h"

namespace crema::layers {

const LayerRegistry& builtinLayers() {
  static const LayerRegistry registry = [] {
    LayerRegistry r;
#define CREMA_ADD_LAYER(NAME) add##NAME(r);
    CREMA_LAYERS(CREMA_ADD_LAYER)
#undef CREMA_ADD_LAYER
    return r;
  }();
  return registry;
}

}  // namespace crema::layers
