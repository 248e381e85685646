// Error messages. Geometry and draws: data/window_test.cc; BVLC Caffe's numbers: golden_test.cc.
#include "support/conformance.h"

namespace crema::conformance {
namespace {

std::string windows(const std::string& options, const std::string& transform = "crop_size: 4") {
  return "type: 'WindowData' top: 'data' top: 'label' window_data_param { source: '" CREMA_SOURCE_DIR
         "/tests/goldens/image_layers/inside.windows' root_folder: '" CREMA_SOURCE_DIR "/tests/goldens/images/' " +
         options + " } transform_param { " + transform + " }";
}

LAYER_CASES(WindowData) {
  // One window of either kind: background first, its class forced to 0.
  Case& c = s.add(windows("batch_size: 3 fg_fraction: 0.4 bg_threshold: 0.3 scale: 0"), {});
  c.smooth = false;
  c.formula = [](const auto&, const auto&) { return std::vector<Values>{Values(3 * 3 * 16, 0.0), {0, 0, 2}}; };
  s.bad(windows("batch_size: 2", ""), {}, "crop_size must be given in transform_param");
  s.bad(windows(""), {}, "batch_size must be given, positive");
  s.bad(windows("batch_size: 2 context_pad: 2"), {}, "context_pad 2 leaves nothing of crop_size 4");
  s.bad(windows("batch_size: 2 crop_mode: 'wrap'"), {}, "crop_mode 'wrap' is neither warp nor square");
  s.bad(windows("batch_size: 2 fg_fraction: 1.5"), {}, "fg_fraction must be from 0 to 1, not 1.5");
  s.bad(windows("batch_size: 4 fg_threshold: 0.95"), {}, "no window with overlap >= fg_threshold 0.95");
  s.bad(windows("batch_size: 4 bg_threshold: 0.05"), {}, "no window with overlap < bg_threshold 0.05");
  s.bad(windows("batch_size: 2", "crop_size: 4 mean_value: 1 mean_value: 2"), {},
        "Specify either 1 mean_value or as many as channels: 3");
  s.bad(windows("batch_size: 2 scale: 2", "crop_size: 4 scale: 3"), {},
        "window_data_param says scale 2 and transform_param 3");
}

}  // namespace
}  // namespace crema::conformance
