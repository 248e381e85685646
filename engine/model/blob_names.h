// Which blobs a net makes and what it ends in, from its description alone: for nets whose shapes are not known yet.
#pragma once
#include <set>
#include <string>

#include "caffe.pb.h"

namespace crema::model {

struct BlobNames {
  std::set<std::string> made;     // the tops of all layers
  std::set<std::string> outputs;  // those that no layer takes, as Caffe's Net::output_blobs
};
// Of a filtered net. Its outputs are those of the built net once it has its splits, as a loss that is also read is one.
BlobNames blobNames(const caffe::NetParameter& filtered);

}  // namespace crema::model
