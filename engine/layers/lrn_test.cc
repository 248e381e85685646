#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(LRN) {
  s.add("type: 'LRN' lrn_param { local_size: 3 alpha: 0.8 k: 2 }", {{2, 5, 3, 3}});
  s.add("type: 'LRN' lrn_param { local_size: 7 alpha: 0.8 beta: 0.6 }", {{1, 4, 2, 3}});
  s.add("type: 'LRN' lrn_param { local_size: 3 alpha: 0.8 norm_region: WITHIN_CHANNEL }", {{2, 2, 5, 4}});
  s.bad("type: 'LRN' lrn_param { local_size: 4 }", {{1, 3, 2, 2}}, "local_size must be odd");
}

}  // namespace
}  // namespace crema::conformance
