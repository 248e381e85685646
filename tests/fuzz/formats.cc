#include "fuzz/formats.h"

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "data/decode.h"
#include "data/file_bytes.h"
#include "data/lmdb_pages.h"
#include "data/lmdb_writer.h"
#include "data/samples.h"
#include "model/filter.h"
#include "model/hdf5_model.h"
#include "model/proto_io.h"
#include "model/trained.h"
#include "model/upgrade.h"
#include "solver/descriptions.h"
#include "solver/solver.h"
#include "support/golden_values.h"

namespace crema::fuzz {
namespace {

namespace fs = std::filesystem;
const std::string kSource = CREMA_SOURCE_DIR;

std::vector<std::string> filesOf(const std::string& folder, const std::string& ending) {
  std::vector<std::string> all;
  for (const auto& f : fs::directory_iterator(kSource + folder))
    if (f.path().string().ends_with(ending)) all.push_back(f.path());
  std::sort(all.begin(), all.end());  // a folder has no order
  for (auto& f : all) f = readFile(f);
  return all;
}

// Names of fields and of enum values, as deep as messages go; layer types.
void collect(const google::protobuf::Descriptor* m, std::set<const void*>& seen, std::vector<std::string>& words) {
  if (!seen.insert(m).second) return;
  for (int i = 0; i < m->field_count(); ++i) {
    const auto* f = m->field(i);
    words.push_back(f->name());
    if (f->message_type()) collect(f->message_type(), seen, words);
    for (int v = 0; f->enum_type() && v < f->enum_type()->value_count(); ++v)
      words.push_back(f->enum_type()->value(v)->name());
  }
}
std::vector<std::string> words(const google::protobuf::Descriptor* m) {
  std::set<const void*> seen;
  std::vector<std::string> all;
  collect(m, seen, all);
  for (const auto& [type, entry] : builtinLayers().entries()) all.push_back(type);
  return all;
}

// A golden layer case as a net: its layer on Input layers.
std::string netOf(const golden::Case& c) {
  std::string text, bottoms;
  for (size_t i = 0; i < c.shapes.size(); ++i) {
    std::string dims;
    for (const int d : c.shapes[i]) dims += fmt::format(" dim: {}", d);
    text +=
        fmt::format("layer {{ name: 'b{0}' type: 'Input' top: 'b{0}' input_param {{ shape {{{1} }} }} }}\n", i, dims);
    bottoms += fmt::format(" bottom: 'b{}'", i);
  }
  return fmt::format("force_backward: true\n{}layer {{ name: 'layer'{} {}{} }}\n", text, bottoms, c.layer,
                     c.layer.find("top:") == std::string::npos ? " top: 'top'" : "");
}

struct Small {  // what the readers of weights and states read into
  Small() : kernels(kernels::bestIsa(), 1) {
    solver =
        parseText<caffe::SolverParameter>(R"(base_lr: 0.01 momentum: 0.9 lr_policy: "fixed" max_iter: 10 random_seed: 1
      net_param { name: 'small' layer { name: 'd' type: 'Input' top: 'd' input_param { shape { dim: 2 dim: 3 dim: 6 dim: 6 } } }
        layer { name: 'c' type: 'Convolution' bottom: 'd' top: 'c' convolution_param { num_output: 2 kernel_size: 3 weight_filler { type: 'xavier' } } }
        layer { name: 'n' type: 'BatchNorm' bottom: 'c' top: 'n' } layer { name: 'i' type: 'InnerProduct' bottom: 'n' top: 'i' inner_product_param { num_output: 3 } } })",
                                          "small");
    options.kernels = &kernels, options.log = false;
  }
  kernels::Context kernels;
  caffe::SolverParameter solver;
  SolverOptions options;
};

void readNetText(const std::string& text, kernels::Context& kernels) {
  auto net = parseText<caffe::NetParameter>(text, "fuzzed");
  upgradeNet(&net, "fuzzed");
  NetOptions o;
  o.kernels = &kernels, o.fills = o.data.openSources = false;
  caffe::NetState state;
  state.set_phase(caffe::TRAIN);
  Net built(net, state, o, "fuzzed");
  if (built.memoryBytes() > (int64_t{1} << 20)) return;  // what it computes is another's test, and slow
  built.forward();
  built.backward();
}

class OneRecord : public RecordSource {
 public:
  explicit OneRecord(const std::string& bytes) : bytes_(bytes) {}
  int64_t size() const override { return 1; }
  Record read(int64_t) const override { return {"0", bytes_}; }
  std::string describe() const override { return "a record"; }

 private:
  const std::string& bytes_;
};

void readDatum(const std::string& bytes) {
  ImageOptions o;
  o.transform.set_scale(0.5);
  const OneRecord source(bytes);
  const auto samples = datumSamples(o, true, source);
  if (samples->shape(0).count() > (1 << 24)) return;
  std::vector<float> image(static_cast<size_t>(samples->shape(0).count())), label(1);
  samples->make(source.read(0), {}, 0, {image.data(), label.data()});
}

void readLmdb(const std::string& bytes) {
  const MemoryBytes file(bytes);
  const LmdbIndex index = lmdbIndex(file, "fuzzed");
  for (int64_t i = 0; i < index.records(); ++i) lmdbRecord(file, index, i, "fuzzed");
}

void decode(const std::string& bytes) {
  Image image;
  std::string why;
  for (const Colour colour : {Colour::kAsIs, Colour::kGrey, Colour::kColour})
    if (!decodeImage(bytes, colour, &image, &why)) badData("{}", why);
}

std::vector<std::string> lmdbs(const std::string& folder) {
  std::vector<std::string> all;
  for (const size_t large : {size_t{0}, size_t{9000}}) {
    const std::string path = fmt::format("{}/lmdb{}", folder, large);
    LmdbWriter writer(path);
    for (int i = 0; i < 150; ++i)
      writer.put(fmt::format("{:08d}", i), std::string(i % 7 == 0 && large ? large : 100, 'v'));
    writer.finish();
    all.push_back(readFile(path + "/data.mdb"));
  }
  return all;
}

std::vector<std::string> datums() {
  std::vector<std::string> all;
  caffe::Datum d;
  d.set_channels(3), d.set_height(4), d.set_width(5), d.set_label(7);
  d.set_data(std::string(60, 'p'));
  all.push_back(d.SerializeAsString());
  d.clear_data();
  for (int i = 0; i < 60; ++i) d.add_float_data(static_cast<float>(i));
  all.push_back(d.SerializeAsString());
  for (const auto& image : filesOf("/tests/goldens/images", "g")) {
    caffe::Datum e;
    e.set_encoded(true), e.set_label(1), e.set_data(image);
    if (image.size() < 4000) all.push_back(e.SerializeAsString());
  }
  return all;
}

}  // namespace

std::vector<Format> formats(const std::string& folder) {
  const auto small = std::make_shared<Small>();
  const auto solver = std::make_shared<Solver>(small->solver, small->options);
  const SnapshotFiles good = solver->snapshot(folder + "/good");
  const auto state = readState(good.state);
  const auto inFile = [folder](const std::string& name, const std::function<void(const std::string&)>& use) {
    return [=](const std::string& bytes) {
      const std::string path = folder + "/" + name;
      std::ofstream(path, std::ios::binary) << bytes;
      use(path);
    };
  };
  const auto weights = inFile("model", [=](const std::string& path) { solver->copyTrainedFrom(path); });
  const auto history = inFile("state", [=](const std::string& path) { solver->restore(path, ""); });

  std::vector<std::string> nets = filesOf("/tests/goldens/nets", ".prototxt"),
                           solvers = filesOf("/examples", "solver.prototxt");
  for (const auto& c : golden::cases(kSource + "/tests/goldens/layers/cases.txt")) nets.push_back(netOf(c));
  std::vector<Format> all;
  all.push_back({"net", nets, words(caffe::NetParameter::descriptor()),
                 [=](const std::string& t) { readNetText(t, small->kernels); }});
  all.push_back({"solver", solvers, words(caffe::SolverParameter::descriptor()), [](const std::string& t) {
                   auto s = parseText<caffe::SolverParameter>(t, "fuzzed");
                   upgradeSolver(&s, "fuzzed");
                 }});
  all.push_back({"caffemodel", {readFile(good.model)}, {}, weights});
  all.push_back({"solverstate", {readFile(good.state)}, {}, history});
  all.push_back({"hdf5model", {hdf5FromModel(solver->net().toProto(false), "good")}, {}, weights, 20});
  all.push_back({"hdf5state", {hdf5FromState(state, "good")}, {}, history, 20});
  all.push_back({"lmdb", lmdbs(folder), {}, readLmdb});
  all.push_back({"jpeg", filesOf("/tests/goldens/images", ".jpg"), {}, decode});
  all.push_back({"png", filesOf("/tests/goldens/images", ".png"), {}, decode});
  all.push_back({"datum", datums(), {}, readDatum});
  return all;
}

}  // namespace crema::fuzz
