// Which layers of a net a state keeps. A pure function; idempotent.
#pragma once
#include <functional>
#include <string>

#include "caffe.pb.h"

namespace crema::model {

// A layer stays when it has no include rule and meets no exclude rule, or meets any include rule; both kinds at once
// are refused. A rule is met when all its conditions hold: phase equal, level within [min_level, max_level], every
// `stage` present, no `not_stage`.
// `said` gets Caffe's log line for each rule that was checked and not met.
caffe::NetParameter filterNet(const caffe::NetParameter& net, const caffe::NetState& state,
                              const std::function<void(const std::string&)>& said = {});
// Why the rule is not met, in Caffe's words without the layer; empty when it is.
std::string unmet(const caffe::NetState& state, const caffe::NetStateRule& rule);

}  // namespace crema::model
