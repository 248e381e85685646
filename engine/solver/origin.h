// What determines the numbers of a run, as a .solverstate carries it, by which `-resume auto` knows the snapshots of its
// own job. Equal for any number of workers and threads.
#pragma once
#include <string>
#include <vector>

#include "caffe.pb.h"

namespace crema::solver {

// Of the layers that training has, without names and paths of what they read.
std::string digestOfNet(const caffe::NetParameter& net, const caffe::NetState& state);
// Without seed and nets, and without what changes no weight: tests, display, snapshots; max_iter where no rate depends
// on it.
caffe::SolverParameter settingsOf(const caffe::SolverParameter& solver);
std::string digestOfSolver(const caffe::SolverParameter& settings);
// fingerprints: of the data layers. net: the one whose `source`s tell records apart of which only the count is known;
// empty where none does.
std::string digestOfRecords(const std::vector<std::string>& fingerprints, const caffe::NetParameter& net,
                            const caffe::NetState& state);

// "net, solver settings (base_lr: 0.1, here base_lr: 0.2), random_seed (7, here 8)": in what they differ; "": in nothing.
std::string difference(const caffe::StateOrigin& found, const caffe::StateOrigin& here);

}  // namespace crema::solver
