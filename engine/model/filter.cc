#include "model/filter.h"

#include <algorithm>

#include "base/error.h"

namespace crema::model {

std::string unmet(const caffe::NetState& state, const caffe::NetStateRule& rule) {
  const auto has = [&](const std::string& stage) {
    return std::find(state.stage().begin(), state.stage().end(), stage) != state.stage().end();
  };
  if (rule.has_phase() && rule.phase() != state.phase())
    return fmt::format("The NetState phase ({}) differed from the phase ({})", static_cast<int>(state.phase()),
                       static_cast<int>(rule.phase()));
  if (rule.has_min_level() && state.level() < rule.min_level())
    return fmt::format("The NetState level ({}) is below the min_level ({})", state.level(), rule.min_level());
  if (rule.has_max_level() && state.level() > rule.max_level())
    return fmt::format("The NetState level ({}) is above the max_level ({})", state.level(), rule.max_level());
  for (const auto& stage : rule.stage())
    if (!has(stage)) return fmt::format("The NetState did not contain stage '{}'", stage);
  for (const auto& stage : rule.not_stage())
    if (has(stage)) return fmt::format("The NetState contained a not_stage '{}'", stage);
  return "";
}

caffe::NetParameter filterNet(const caffe::NetParameter& net, const caffe::NetState& state,
                              const std::function<void(const std::string&)>& said) {
  caffe::NetParameter out = net;
  out.clear_layer();
  for (const auto& layer : net.layer()) {
    if (layer.include_size() && layer.exclude_size())
      invalid("layer '{}' ({}) has both include and exclude rules; keep one kind", layer.name(), layer.type());
    const auto met = [&](const caffe::NetStateRule& rule) {
      const std::string why = unmet(state, rule);
      if (said && !why.empty()) said(fmt::format("{} specified by a rule in layer {}", why, layer.name()));
      return why.empty();
    };
    const bool keep = layer.include_size() ? std::any_of(layer.include().begin(), layer.include().end(), met)
                                           : std::none_of(layer.exclude().begin(), layer.exclude().end(), met);
    if (keep) *out.add_layer() = layer;
  }
  return out;
}

}  // namespace crema::model
