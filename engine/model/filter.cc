#include "model/filter.h"

#include <algorithm>

#include "base/error.h"

namespace crema {

bool meetsRule(const caffe::NetState& state, const caffe::NetStateRule& rule) {
  const auto has = [&](const std::string& stage) {
    return std::find(state.stage().begin(), state.stage().end(), stage) != state.stage().end();
  };
  if (rule.has_phase() && rule.phase() != state.phase()) return false;
  if (rule.has_min_level() && state.level() < rule.min_level()) return false;
  if (rule.has_max_level() && state.level() > rule.max_level()) return false;
  return std::all_of(rule.stage().begin(), rule.stage().end(), has) &&
         std::none_of(rule.not_stage().begin(), rule.not_stage().end(), has);
}

caffe::NetParameter filterNet(const caffe::NetParameter& net, const caffe::NetState& state) {
  caffe::NetParameter out = net;
  out.clear_layer();
  const auto met = [&](const caffe::NetStateRule& rule) { return meetsRule(state, rule); };
  for (const auto& layer : net.layer()) {
    if (layer.include_size() && layer.exclude_size())
      invalid("layer '{}' ({}) has both include and exclude rules; keep one kind", layer.name(), layer.type());
    const bool keep = layer.include_size() ? std::any_of(layer.include().begin(), layer.include().end(), met)
                                           : std::none_of(layer.exclude().begin(), layer.exclude().end(), met);
    if (keep) *out.add_layer() = layer;
  }
  return out;
}

}  // namespace crema
