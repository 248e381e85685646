// Python: a layer that Python code computes (python_param: module, layer, param_str). Only the caffe module can run it;
// it replaces this type in its registry (api/host_layer.cc).
#include "layers/builtin.h"

namespace crema::layers {

void addPython(LayerRegistry& r) {
  r.add("Python", "a layer that a Python program computes",
        [](const caffe::LayerParameter& p, const LayerContext&) -> std::unique_ptr<Layer> {
          invalid(
              "Python layers need Python: class '{}' of module '{}' can be used by a program that says `import caffe`, "
              "not here",
              p.python_param().layer(), p.python_param().module());
        });
}

}  // namespace crema::layers
