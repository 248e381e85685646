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

// `inlined`: the name in messages of a net that inlineNets() put into the solver; empty: the field's.
NetDescription trainDescription(const caffe::SolverParameter& solver, const std::string& folder,
                                const std::string& inlined = "");
std::vector<NetDescription> testDescriptions(const caffe::SolverParameter& solver, const std::string& folder,
                                             const std::string& inlined = "");
// The net that scores records: the first test net; without any, the train net in phase TEST.
NetDescription scoringDescription(const caffe::SolverParameter& solver, const std::string& folder,
                                  const std::string& inlined = "");
// The same solver with every net inlined, so that it needs no files.
caffe::SolverParameter inlineNets(const caffe::SolverParameter& solver, const std::string& folder);
// The same, read from `path`, ready to run: checked, nets inlined, snapshot_prefix completed (an empty one becomes the
// file's name without extension, a folder gets that name appended), random_seed fixed: `seedIfUnset`, or a random one
// that is logged.
caffe::SolverParameter prepareSolver(caffe::SolverParameter solver, const std::string& path, int64_t seedIfUnset = -1);
std::string netOrigin(const caffe::SolverParameter& written);  // the file of its net, for messages; may be empty
// The reverse of inlineNets(), for people: nets are file names again where those are known.
caffe::SolverParameter withoutInlined(const caffe::SolverParameter& solver, const std::string& inlined);
void checkSolver(const caffe::SolverParameter& solver);    // checks that need no nets; invalid() names the field
void warnOfUnusual(const caffe::SolverParameter& solver);  // logs settings that are allowed but rarely intended

}  // namespace crema::solver
