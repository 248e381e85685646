// Models and snapshots as files of either format: binaryproto, or HDF5 as Caffe lays it out (model/hdf5_model.h). A
// file's first bytes say which it is, never its name.
//
// libhdf5 1.10.8 does not check its input: of 20,000 damaged files in Caffe's layout none crashed the process, of
// 10,000 in HDF5's newest layout 1,237 did (hdf5_test.cc). So it reads in a child, whose crash or timeout becomes an
// error that names the file. Cost: one fork, and the values go through a pipe.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "caffe.pb.h"

namespace crema::model {

struct Trained {
  caffe::NetParameter net;
  bool ownersOnly = false;  // blobs that a layer shares with an owner are absent, as in HDF5 models
  // Where `file` is set, values of blobs are still in it, by layer and blob; the others are in `net`.
  const MappedFile* file = nullptr;
  std::vector<std::vector<std::string_view>> values;

  Trained(caffe::NetParameter n, bool owners = false) : net(std::move(n)), ownersOnly(owners) {}
  std::string_view valuesOf(int layer, int blob) const {  // floats; empty: in `net`
    if (!file) return {};
    const auto& of = values[static_cast<size_t>(layer)];
    return static_cast<size_t>(blob) < of.size() ? of[static_cast<size_t>(blob)] : std::string_view();
  }
  void copyValues(int layer, int blob, float* to) const;  // all of valuesOf(); ioError
};
Trained readTrained(const std::string& path);
// use(it), with values that stay in the file where it allows that, so that they are not in memory a second time.
void useTrained(const std::string& path, const std::function<void(const Trained&)>& use);
caffe::SolverState readState(const std::string& path);

using SnapshotFormat = caffe::SolverParameter::SnapshotFormat;
// HDF5 adds ".h5", BINARYPROTO removes it: CaffeOnSpark's rule for the final model, Caffe's names for snapshots.
std::string nameFor(const std::string& path, SnapshotFormat format);
void writeModel(const std::string& path, const caffe::NetParameter& net, SnapshotFormat format);
void writeState(const std::string& path, const caffe::SolverState& state, SnapshotFormat format);

}  // namespace crema::model
