#include "fuzz/formats.h"

#include <fstream>
#include <set>

#include "base/file.h"
#include "data/idx.h"
#include "data/image_list.h"
#include "fuzz/onnx.h"
#include "fuzz/stored.h"
#include "fuzz/wire.h"
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
  for (const auto& [type, entry] : layers::builtinLayers().entries()) all.push_back(type);
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
    solver = model::parseText<caffe::SolverParameter>(
        R"(base_lr: 0.01 momentum: 0.9 lr_policy: "fixed" max_iter: 10 random_seed: 1
      net_param { name: 'small' layer { name: 'd' type: 'Input' top: 'd' input_param { shape { dim: 2 dim: 3 dim: 6 dim: 6 } } }
        layer { name: 'c' type: 'Convolution' bottom: 'd' top: 'c' convolution_param { num_output: 2 kernel_size: 3 weight_filler { type: 'xavier' } } }
        layer { name: 'n' type: 'BatchNorm' bottom: 'c' top: 'n' } layer { name: 'i' type: 'InnerProduct' bottom: 'n' top: 'i' inner_product_param { num_output: 3 } } })",
        "small");
    options.kernels = &kernels, options.log = false;
  }
  kernels::Context kernels;
  caffe::SolverParameter solver;
  solver::SolverOptions options;
};

// A description that asks for gigabytes is no error of ours; such inputs are left out, as sanitizers limit allocations.
bool huge(const caffe::NetParameter& net) {
  for (const auto& layer : net.layer())
    for (const auto& shape : layer.input_param().shape()) {
      double count = 1;
      for (const int64_t d : shape.dim()) count *= static_cast<double>(std::max<int64_t>(d, 1));
      if (count > (1 << 27)) return true;
    }
  return false;
}

void readNetText(const std::string& text, kernels::Context& kernels) {
  auto net = model::parseText<caffe::NetParameter>(text, "fuzzed");
  model::upgradeNet(&net, "fuzzed");
  if (huge(net)) return;
  net::NetOptions o;
  o.kernels = &kernels, o.fills = false, o.data.source = layers::FromNowhere{};
  caffe::NetState state;
  state.set_phase(caffe::TRAIN);
  net::Net built(net, state, o, "fuzzed");
  if (built.memoryBytes() > (int64_t{1} << 20)) return;  // large nets are tested elsewhere, and slow
  built.forward();
  built.backward();
}

using Read = std::function<void(const std::string&)>;

// What reads a file of this name that holds the input.
Read inFile(const std::string& path, const Read& use) {
  return [=](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    use(path);
  };
}

void addStored(const std::string& folder, std::vector<Format>& all) {
  all.push_back({"lmdb", lmdbs(folder), {}, readLmdb});
  all.push_back({"jpeg", filesOf("/tests/goldens/images", ".jpg"), {}, decode});
  all.push_back({"png", filesOf("/tests/goldens/images", ".png"), {}, decode});
  all.push_back({"datum", datums(), {}, readDatum});
  const auto levelDb = std::make_shared<LevelDbFiles>(folder);
  all.push_back({"leveldb", levelDb->seeds(), {}, [=](const std::string& bytes) { levelDb->read(bytes); }, 5});
  all.push_back({"imagelist",
                 {"photos/a b.jpg 3\nc.png 0\r\n\n/d/e.jpeg -7\n"},
                 {},
                 inFile(folder + "/list", [](const std::string& path) {
                   const data::ImageList list(path);
                   for (int64_t i = 0; i < list.size(); ++i) list.at(i);
                 })});
  all.push_back(
      {"windows",
       {"# 0\na.jpg\n3 100 120\n3\n1 0.9 5 6 50 60\n0 0.1 0 0 20 10\n2 0.6 90 80 119 99\n# 1\nb c.jpg\n3 8 9\n0\n"},
       {},
       inFile(folder + "/windows", readWindows)});
  all.push_back({"mnist",
                 {std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x03\0\0\0\x02", 16) + std::string(12, 'p')},
                 {},
                 inFile(folder + "/images", [](const std::string& path) { data::readIdxImages(path); })});
  all.push_back(
      {"hdf5rows",
       {rowsFile(folder + "/good.h5")},
       {},
       inFile(folder + "/rows.h5", [=](const std::string& path) { readHdf5Rows(path, folder + "/rows.txt"); }),
       50});
}

}  // namespace

std::vector<Format> formats(const std::string& folder) {
  const auto small = std::make_shared<Small>();
  const auto solver = std::make_shared<solver::Solver>(small->solver, small->options);
  const solver::SnapshotFiles good = solver->snapshot(folder + "/good");
  const auto state = model::readState(good.state);
  const auto weights = inFile(folder + "/model", [=](const std::string& path) { solver->copyTrainedFrom(path); });
  const auto history = inFile(folder + "/state", [=](const std::string& path) { solver->restore(path, ""); });

  std::vector<std::string> nets = filesOf("/tests/goldens/nets", ".prototxt"),
                           solvers = filesOf("/examples", "solver.prototxt");
  for (const auto& c : golden::cases(kSource + "/tests/goldens/layers/cases.txt"))
    if (c.layer.find('@') == std::string::npos && c.layer.find("Silence") == std::string::npos)
      nets.push_back(netOf(c));                       // those with an @ write files; netOf() gives each layer a top
  std::erase_if(nets, [&](const std::string& text) {  // of files that are not here
    try {
      readNetText(text, small->kernels);
    } catch (const Error& e) {
      return e.kind() == ErrorKind::kIo;
    }
    return false;
  });
  std::vector<Format> all;
  all.push_back({"net", nets, words(caffe::NetParameter::descriptor()),
                 [=](const std::string& t) { readNetText(t, small->kernels); }, 1, "built for planning only"});
  all.push_back({"solver", solvers, words(caffe::SolverParameter::descriptor()), [](const std::string& t) {
                   auto s = model::parseText<caffe::SolverParameter>(t, "fuzzed");
                   model::upgradeSolver(&s, "fuzzed");
                 }});
  all.push_back({"caffemodel", {readFile(good.model)}, {}, weights});
  all.push_back({"solverstate", {readFile(good.state)}, {}, history});
  all.push_back({"hdf5model", {model::hdf5FromModel(solver->net().toProto(false), "good")}, {}, weights, 20});
  all.push_back({"hdf5state", {model::hdf5FromState(state, "good")}, {}, history, 20});
  all.push_back({"onnx", onnxModels(folder), {}, [=](const std::string& bytes) { readOnnx(bytes, folder); }});
  all.push_back({"onnxtext", onnxTexts(), onnxWords(), [=](const std::string& text) { readOnnxText(text, folder); }});
  addStored(folder, all);
  for (auto& format : wireFormats()) all.push_back(std::move(format));
  return all;
}

}  // namespace crema::fuzz
