#include "model/blob_names.h"

namespace crema::model {

BlobNames blobNames(const caffe::NetParameter& filtered) {
  BlobNames names;
  for (const auto& layer : filtered.layer()) {
    for (const auto& bottom : layer.bottom()) names.outputs.erase(bottom);
    for (const auto& top : layer.top()) names.made.insert(top), names.outputs.insert(top);
  }
  return names;
}

}  // namespace crema::model
