// One reader per blob: where a top has several, a Split layer follows its last writer. A pure function; idempotent.
#pragma once
#include "caffe.pb.h"

namespace crema::model {

// For blob B written last by layer L as top t: layer `B_L_t_split` with tops `B_L_t_split_k`; reader k takes top k. A
// loss_weight given on the top counts as reader 0: it moves to top 0 of the Split. Names as in Caffe: logs, saved
// models and pycaffe show them.
caffe::NetParameter insertSplits(const caffe::NetParameter& net);

}  // namespace crema::model
