// A binary model in the bytes of its file. The values of blobs are most of it: they stay where they are until they are
// copied to their place, so that a net's weights are in memory once. (AlexNet, scoring: 542 MiB at the peak with layers that
// were parsed whole one by one, fc6 being there three times; 277 since, and since parameters move to their common place
// piece by piece.)
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "caffe.pb.h"

namespace crema::model {

struct StoredModel {
  caffe::NetParameter net;  // as it was written, without `data` and `diff` of the blobs that have values here
  // By layer and blob, of `layer` or of the older `layers`: floats as protobuf packs them, little-endian, not aligned; empty:
  // they are in `net`, as numbers of another type are, or several runs of them.
  std::vector<std::vector<std::string_view>> values;
};
// Nothing where protobuf could not read the message, or layers of both kinds are in it.
std::optional<StoredModel> storedModel(std::string_view bytes);

}  // namespace crema::model
