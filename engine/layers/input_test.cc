#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Input) { s.add("type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } }", {}).smooth = false; }

}  // namespace
}  // namespace crema::conformance
