// Caffe's HDF5 layouts as messages.
//
// Model: group `data`, in it a group per layer, in it datasets "0", "1"... with the blobs' values and shapes; a blob
// that its layer shares with an owner is left out. `diff` likewise when gradients are kept. State: integers `iter` and
// `current_step`, text `learned_net`, group `history` with datasets "0", "1"...
// A '/' in a layer's name nests groups. Callers hold hdf5Mutex().
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "caffe.pb.h"

namespace crema::model {

// A missing blob is a BlobProto without shape and values, in reading and writing.
bool isAbsent(const caffe::BlobProto& blob);
std::string hdf5FromModel(const caffe::NetParameter& net, const std::string& file);
caffe::NetParameter modelFromHdf5(std::string_view bytes, const std::string& file);
std::string hdf5FromState(const caffe::SolverState& state, const std::string& file);
caffe::SolverState stateFromHdf5(std::string_view bytes, const std::string& file);

// invalid() when names of layers (name, number of blobs) collide as groups.
void checkHdf5Layers(const std::vector<std::pair<std::string, int>>& layers);

}  // namespace crema::model
