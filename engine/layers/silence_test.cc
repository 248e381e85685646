#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Silence) { s.add("type: 'Silence'", {{2, 3}, {4}}); }

}  // namespace
}  // namespace crema::conformance
