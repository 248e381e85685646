#include "model/hdf5_model.h"

#include <fmt/ranges.h>

#include <charconv>
#include <set>

#include "base/error.h"
#include "model/hdf5_file.h"
#include "model/proto_io.h"

namespace crema::model {
namespace {

constexpr int kMostBlobs = 1000, kDeepest = 32;

// The number of a dataset's name, "0", "1"...; -1 for other names.
int numberOf(const std::string& name) {
  int n = -1;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), n);
  return failed == std::errc() && n >= 0 && n < kMostBlobs && std::to_string(n) == name ? n : -1;
}

std::string namesOf(const Hdf5Reader& in, const std::string& group) {
  std::vector<std::string> names;
  for (const auto& e : in.list(group))
    if (names.size() < 10) names.push_back(e.name);
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "));
}

void readLayers(const Hdf5Reader& in, const std::string& file, const std::string& path, int depth,
                caffe::NetParameter* net) {
  if (depth > kDeepest)
    badData("{} nests more than {} groups at '{}...'; it is damaged: take it anew from where it was made", file,
            kDeepest, path.substr(0, 60));
  const auto entries = in.list(path);
  bool groups = false, datasets = false;
  for (const auto& e : entries) (e.group ? groups : datasets) = true;
  if (depth > 0 && (datasets || !groups)) {
    auto* layer = net->add_layer();
    layer->set_name(path.substr(sizeof "data/" - 1));
    for (const auto& e : entries) {
      if (e.group) continue;
      const int n = numberOf(e.name);
      if (n < 0)
        badData("{} holds '{}/{}', Caffe numbers the blobs of a layer: is it a model of another program?", file, path,
                e.name);
      while (layer->blobs_size() <= n) layer->add_blobs();
      inside([&] { return fmt::format("in layer '{}'", layer->name()); },
             [&] { in.readBlob(path + "/" + e.name, layer->mutable_blobs(n)); });
    }
  } else if (datasets) {
    badData("{} holds datasets in '{}' where layers are expected; take it anew from where it was made", file, path);
  }
  for (const auto& e : entries)
    if (e.group) readLayers(in, file, path + "/" + e.name, depth + 1, net);
}

}  // namespace

bool isAbsent(const caffe::BlobProto& blob) {
  return blob.data_size() + blob.double_data_size() == 0 && !blob.has_shape() && !blob.has_num() &&
         !blob.has_channels() && !blob.has_height() && !blob.has_width();
}

caffe::NetParameter modelFromHdf5(std::string_view bytes, const std::string& file) {
  const Hdf5Reader in(bytes, file);
  if (!in.has("data"))
    badData(
        "{} is no .caffemodel.h5: it has no group 'data' (but {}){}", file, namesOf(in, "/"),
        in.has("history") ? "; it is a .solverstate.h5: pass it with -snapshot" : "; name the model of a Caffe net");
  caffe::NetParameter net;
  readLayers(in, file, "data", 0, &net);
  if (net.layer_size() == 0)
    badData("{} holds no layers in its group 'data'; take it anew from where it was made", file);
  return net;
}

namespace {

// The solver's settings stand apart, for the words of a refusal alone: another version may know other fields, and a string
// that is read has at most 64 KiB.
void writeOrigin(const caffe::StateOrigin& origin, Hdf5Writer* out) {
  caffe::StateOrigin digests = origin;
  digests.clear_settings();
  out->string("origin", toText(digests));
  const std::string settings = toText(origin.settings());
  if (!settings.empty() && settings.size() <= (32 << 10)) out->string("settings", settings);
}

void readOrigin(const Hdf5Reader& in, const std::string& file, caffe::StateOrigin* origin) {
  *origin = parseText<caffe::StateOrigin>(in.readString("origin"), file);
  if (!in.has("settings")) return;
  try {
    *origin->mutable_settings() = parseText<caffe::SolverParameter>(in.readString("settings"), file);
  } catch (const Error&) {
    origin->clear_settings();
  }
}

}  // namespace

caffe::SolverState stateFromHdf5(std::string_view bytes, const std::string& file) {
  const Hdf5Reader in(bytes, file);
  for (const char* part : {"iter", "current_step", "history"})
    if (!in.has(part))
      badData("{} is no .solverstate.h5: it has no '{}' (but {}){}", file, part, namesOf(in, "/"),
              in.has("data") ? "; it is a .caffemodel.h5: pass it with -weights, or resume from its .solverstate.h5"
                             : "; take it anew from where it was made");
  caffe::SolverState state;
  state.set_iter(in.readInt("iter"));
  state.set_current_step(in.readInt("current_step"));
  if (in.has("learned_net")) state.set_learned_net(in.readString("learned_net"));
  if (in.has("origin")) readOrigin(in, file, state.mutable_origin());
  if (in.has("sums")) *state.mutable_sums() = parseText<caffe::SnapshotSums>(in.readString("sums"), file);
  const auto entries = in.list("history");
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string path = fmt::format("history/{}", i);
    if (!in.has(path)) badData("{} has {} history blobs, but no '{}'; take it anew", file, entries.size(), path);
    in.readBlob(path, state.add_history());
  }
  return state;
}

void checkHdf5Layers(const std::vector<std::pair<std::string, int>>& layers) {
  const std::string remedy = "; rename the layer, or set snapshot_format: BINARYPROTO";
  std::set<std::string> groups, datasets;
  for (const auto& [name, blobs] : layers) {
    if (("/" + name + "/").find("//") != std::string::npos || ("/" + name + "/").find("/./") != std::string::npos)
      invalid("layer '{}' cannot be a group of an HDF5 file: a part of its name between slashes is empty or '.'{}",
              name, remedy);
    if (!groups.insert(name).second) invalid("two layers named '{}' cannot stand in one HDF5 file{}", name, remedy);
    for (int i = 0; i < blobs; ++i) datasets.insert(fmt::format("{}/{}", name, i));
  }
  for (const auto& [name, blobs] : layers)
    for (size_t end = name.find('/'); end != std::string::npos; end = name.find('/', end + 1))
      groups.insert(name.substr(0, end));
  for (const std::string& group : groups)
    if (datasets.count(group))
      invalid("group '{}' of a layer's name is also a blob of another layer in an HDF5 file{}", group, remedy);
}

std::string hdf5FromModel(const caffe::NetParameter& net, const std::string& file) {
  std::vector<std::pair<std::string, int>> layers;
  bool diffs = false;
  for (const auto& layer : net.layer()) {
    layers.emplace_back(layer.name(), layer.blobs_size());
    for (const auto& blob : layer.blobs()) diffs |= blob.diff_size() + blob.double_diff_size() > 0;
  }
  inside([&] { return fmt::format("while writing {}", file); }, [&] { checkHdf5Layers(layers); });
  Hdf5Writer out(file);
  out.group("data");
  if (diffs) out.group("diff");
  for (const auto& layer : net.layer()) {
    out.group("data/" + layer.name());
    if (diffs) out.group("diff/" + layer.name());
    for (int i = 0; i < layer.blobs_size(); ++i) {
      const caffe::BlobProto& blob = layer.blobs(i);
      if (blob.data_size() + blob.double_data_size() > 0) out.blob(fmt::format("data/{}/{}", layer.name(), i), blob);
      if (diffs) out.blob(fmt::format("diff/{}/{}", layer.name(), i), blob, true);
    }
  }
  return out.finish();
}

std::string hdf5FromState(const caffe::SolverState& state, const std::string& file) {
  Hdf5Writer out(file);
  out.integer("iter", state.iter());
  out.string("learned_net", state.learned_net());
  out.integer("current_step", state.current_step());
  if (state.has_origin()) writeOrigin(state.origin(), &out);
  if (state.has_sums()) out.string("sums", toText(state.sums()));
  out.group("history");
  for (int i = 0; i < state.history_size(); ++i) out.blob(fmt::format("history/{}", i), state.history(i));
  return out.finish();
}

}  // namespace crema::model
