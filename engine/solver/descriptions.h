// Which nets a solver means, read from their files: train_net_param, train_net, net_param or net (exactly one) for
// training; test_net_param, then test_net, then net_param or net for every test_iter left, for testing.
#pragma once
#include <string>
#include <vector>

#include "caffe.pb.h"

namespace crema::solver {

struct NetDescription {
  caffe::NetParameter param;
  caffe::NetState state;  // TRAIN or TEST < state in the net < train_state / test_state
  std::string origin;     // for messages: a file name, or the field it came from
  std::string said;       // the same in the words of Caffe's log: "net file: a.prototxt", "test_net_param"
};

// `inlined`: what messages call a net that inlineNets() put into the solver; empty: by its field.
NetDescription trainDescription(const caffe::SolverParameter& solver, const std::string& folder,
                                const std::string& inlined = "");
std::vector<NetDescription> testDescriptions(const caffe::SolverParameter& solver, const std::string& folder,
                                             const std::string& inlined = "");
// The same solver with every net inlined, so that it can travel without files. Means the same as before.
caffe::SolverParameter inlineNets(const caffe::SolverParameter& solver, const std::string& folder);
// The same, read from `path`, ready to run: judged, nets inlined, snapshot_prefix filled in (the file's name without
// extension; in a folder that it names), random_seed fixed: `seedIfUnset`, or one that is drawn and logged.
caffe::SolverParameter prepareSolver(caffe::SolverParameter solver, const std::string& path, int64_t seedIfUnset = -1);
// As somebody wrote it: what inlineNets() put in is a file's name again, where that is known.
caffe::SolverParameter withoutInlined(const caffe::SolverParameter& solver, const std::string& inlined);
void checkSolver(
    const caffe::SolverParameter& solver);  // fields that can be judged without nets; invalid() names the field
void warnOfUnusual(const caffe::SolverParameter& solver);  // of what is allowed and seldom meant

}  // namespace crema::solver
