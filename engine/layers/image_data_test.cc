// Error messages and the simplest pictures. Lists, orders and sizes: data/image_list_test.cc; BVLC Caffe's numbers:
// golden_test.cc; training: tests/end_to_end.
#include "support/conformance.h"

namespace crema::conformance {
namespace {

std::string images(const std::string& options, const std::string& rest = "") {
  return "type: 'ImageData' top: 'data' top: 'label' image_data_param { root_folder: '" CREMA_SOURCE_DIR
         "/tests/goldens/images/' " +
         options + " } " + rest;
}
const std::string kMixed = "source: '" CREMA_SOURCE_DIR "/tests/goldens/image_layers/mixed.list' ";

LAYER_CASES(ImageData) {
  // Four images for a batch of five: the list starts again.
  Case& c = s.add(images(kMixed + "batch_size: 5 new_height: 1 new_width: 1", "transform_param { scale: 0 }"), {});
  c.smooth = false;
  c.formula = [](const auto&, const auto&) { return std::vector<Values>{Values(15, 0.0), {1, 2, 5, -4, 1}}; };
  s.bad(images(kMixed + "batch_size: 2 new_height: 3"), {},
        "new_height and new_width to be set at the same time. (3 and 0)");
  s.bad(images(kMixed + "batch_size: 0"), {}, "batch_size must be given, positive");
  s.bad(images("batch_size: 2"), {}, "names no `source`");
  s.bad(images("source: 'absent.list'"), {}, "absent.list");
  s.bad(images(kMixed + "batch_size: 2"), {},
        "it is 3x37x53 and becomes 3x37x53, the first image becomes 3x19x29; give new_height");
  s.bad(images(kMixed + "batch_size: 2", "transform_param { crop_size: 20 }"), {}, "at line 1 of image list");
  s.bad(images(kMixed + "batch_size: 2 rand_skip: 5"), {}, "Not enough points to skip: rand_skip 5 for 4 images");
  s.bad("type: 'ImageData' top: 'data' image_data_param { " + kMixed + " }", {}, "takes 2 top blob(s)");
}

}  // namespace
}  // namespace crema::conformance
