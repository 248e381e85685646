// What of a net depends on the labels of its records. A pure function over a net that is filtered and has no splits yet.
#pragma once
#include <string>
#include <vector>

#include "caffe.pb.h"

namespace crema::model {

// Whether a Spark job gives the layer its records: Data, MemoryData or CoSData. The first top is the input, each further
// one a label.
bool takesRecords(const caffe::LayerParameter& layer);

struct LabelBlobs {
  std::vector<std::string> dependent;  // the labels, and every blob computed from one, as the layers make them
  // What the net ends in without the layers that take those: scores that only loss and accuracy read are an output. A
  // data layer's tops are none.
  std::vector<std::string> outputsWithout;
};
LabelBlobs labelBlobs(const caffe::NetParameter& filtered);

}  // namespace crema::model
