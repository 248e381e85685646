// The layers of a binary model in the bytes of its file. The values of a blob are most of it: they stay where they are until
// they are copied to their place, so that a net's weights are in memory once. (AlexNet, scoring: 542 MiB at the peak with
// layers that were parsed whole, fc6 being there three times, and 389 since.)
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "caffe.pb.h"

namespace crema::model {

// Of a model as Caffe writes it today, each layer's message; none where anything needs the whole, such as layers of older
// formats.
std::vector<std::string_view> storedLayers(std::string_view model);

struct StoredLayer {
  caffe::LayerParameter layer;  // without `data` of the blobs that have values here
  std::vector<std::string_view>
      values;  // by blob: floats as protobuf packs them, little-endian, not aligned; empty: in `layer`
};
// Nothing where protobuf could not read the message either.
std::optional<StoredLayer> storedLayer(std::string_view bytes);

}  // namespace crema::model
