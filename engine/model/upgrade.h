// Nets and solvers as files, old forms brought to the newest one.
//
// In this order: V0 layers -> V1, data transform fields -> transform_param, V1 layers -> `layer`, `input` fields -> an
// Input layer, BatchNorm's three params -> lr_mult 0. Every step is a pure function of the message and does nothing to
// a message without its form.
#pragma once
#include <string>

#include "caffe.pb.h"

namespace crema::model {

// True when everything could be carried over; what could not is logged with its layer. `name` is for messages.
bool upgradeNet(caffe::NetParameter* net, const std::string& name);
void upgradeSolver(caffe::SolverParameter* solver, const std::string& name);  // solver_type -> type

caffe::NetParameter readNet(const std::string& path);        // a prototxt; kInvalid
caffe::NetParameter readNetBinary(const std::string& path);  // a binary .caffemodel; kData
caffe::SolverParameter readSolver(const std::string& path);  // a prototxt; kInvalid
void refuseSolver(const std::string& path);  // invalid() with the nets that it names, where the file is a solver

// The steps, for tests and tools.
bool upgradeV0(caffe::NetParameter* net, const std::string& name);
void upgradeDataTransform(caffe::NetParameter* net, const std::string& name);
bool upgradeV1(caffe::NetParameter* net, const std::string& name);
void upgradeInput(caffe::NetParameter* net, const std::string& name);
void upgradeBatchNorm(caffe::NetParameter* net, const std::string& name);

}  // namespace crema::model
