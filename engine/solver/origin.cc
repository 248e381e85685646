#include "solver/origin.h"

#include <algorithm>
#include <initializer_list>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text.h"
#include "model/filter.h"
#include "model/proto_io.h"

namespace crema::solver {
namespace {

using google::protobuf::Message;

void clear(std::initializer_list<const char*> names, Message* m) {
  for (const char* name : names)
    if (const auto* field = m->GetDescriptor()->FindFieldByName(name)) m->GetReflection()->ClearField(m, field);
}

// Calls use(options) for the options of each layer that reads records.
template <class Use>
void ofReaders(caffe::NetParameter* net, const Use& use) {
  for (caffe::LayerParameter& layer : *net->mutable_layer()) {
    if (layer.bottom_size() > 0) continue;
    std::vector<const google::protobuf::FieldDescriptor*> set;
    layer.GetReflection()->ListFields(layer, &set);
    for (const auto* field : set)
      if (!field->is_repeated() && field->cpp_type() == field->CPPTYPE_MESSAGE)
        use(layer.GetReflection()->MutableMessage(&layer, field));
  }
}

// "base_lr: 0.1", and "" where it is not set.
std::string textOfField(caffe::SolverParameter settings, const google::protobuf::FieldDescriptor* field) {
  caffe::SolverParameter alone;
  alone.GetReflection()->SwapFields(&alone, &settings, {field});
  std::string text = model::toText(alone);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// Those of a state that does not say them are known to differ, no more.
std::string differenceOfSettings(const caffe::StateOrigin& found, const caffe::StateOrigin& here) {
  std::vector<std::string> all;
  const auto* fields = caffe::SolverParameter::descriptor();
  for (int i = 0; i < fields->field_count() && found.has_settings(); ++i) {
    const std::string there = textOfField(found.settings(), fields->field(i)),
                      mine = textOfField(here.settings(), fields->field(i));
    if (there != mine)
      all.push_back(fmt::format("{}, here {}", there.empty() ? fmt::format("no {}", fields->field(i)->name()) : there,
                                mine.empty() ? "none" : mine));
  }
  return "solver settings" + (all.empty() ? "" : " (" + joined(all, "; ") + ")");
}

std::string digest(const std::string& bytes) { return sha256Hex(bytes).substr(0, 32); }

}  // namespace

std::string digestOfNet(const caffe::NetParameter& net, const caffe::NetState& state) {
  caffe::NetParameter n = model::filterNet(net, state);
  clear({"name", "state", "debug_info"}, &n);
  for (caffe::LayerParameter& layer : *n.mutable_layer()) clear({"include", "exclude", "phase"}, &layer);
  ofReaders(&n, [](Message* options) { clear({"source", "root_folder", "prefetch", "mean_file"}, options); });
  return digest(n.SerializeAsString());
}

caffe::SolverParameter settingsOf(const caffe::SolverParameter& solver) {
  caffe::SolverParameter s = solver;
  clear({"net",
         "net_param",
         "train_net",
         "train_net_param",
         "train_state",
         "random_seed",
         "solver_mode",
         "device_id",
         "test_net",
         "test_net_param",
         "test_state",
         "test_iter",
         "test_interval",
         "test_compute_loss",
         "test_initialization",
         "display",
         "average_loss",
         "debug_info",
         "snapshot",
         "snapshot_prefix",
         "snapshot_diff",
         "snapshot_after_train",
         "snapshot_format",
         "layer_wise_reduce"},
        &s);
  if (s.lr_policy() != "poly") s.clear_max_iter();
  return s;
}

std::string digestOfSolver(const caffe::SolverParameter& settings) { return digest(settings.SerializeAsString()); }

std::string digestOfRecords(const std::vector<std::string>& fingerprints, const caffe::NetParameter& net,
                            const caffe::NetState& state) {
  std::vector<std::string> all = fingerprints;
  caffe::NetParameter n = model::filterNet(net, state);
  ofReaders(&n, [&](Message* options) {
    const auto* field = options->GetDescriptor()->FindFieldByName("source");
    if (field && field->cpp_type() == field->CPPTYPE_STRING && !field->is_repeated())
      all.push_back(options->GetReflection()->GetString(*options, field));
  });
  return digest(joined(all, "\n"));
}

std::string difference(const caffe::StateOrigin& found, const caffe::StateOrigin& here) {
  std::vector<std::string> all;
  if (found.net() != here.net()) all.emplace_back("net");
  if (found.solver() != here.solver()) all.push_back(differenceOfSettings(found, here));
  if (found.records() != here.records()) all.emplace_back("records");
  if (found.random_seed() != here.random_seed())
    all.push_back(fmt::format("random_seed ({}, here {})", found.random_seed(), here.random_seed()));
  if (found.ranks() != here.ranks()) all.push_back(fmt::format("ranks ({}, here {})", found.ranks(), here.ranks()));
  return joined(all, ", ");
}

}  // namespace crema::solver
