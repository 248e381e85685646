// Sums of what a snapshot holds, which its .solverstate carries: values that a disk or a copy has changed are found,
// and not learnt from. XXH3 of 64 bits: of the model's bytes as they lie in its file, and of iteration, step and
// history, whatever the state's format. Cost: the model is read once more, from the kernel's cache where it was just
// written.
#pragma once
#include <string>

#include "caffe.pb.h"

namespace crema::solver {

caffe::SnapshotSums sumsOf(const caffe::SolverState& state, const std::string& model);  // ioError

// kData, with what to do, where the values of a state, or of the model beside it, are not those that were saved. States
// without sums (Caffe's, an earlier Crema's) pass. path: of the state.
void checkState(const caffe::SolverState& state, const std::string& path);
void checkModel(const caffe::SolverState& state, const std::string& path, const std::string& model);

}  // namespace crema::solver
