#include "fuzz/formats.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/file.h"
#include "data/decode.h"
#include "data/file_bytes.h"
#include "data/hdf5_source.h"
#include "data/idx.h"
#include "data/image_list.h"
#include "data/leveldb_source.h"
#include "data/lmdb_pages.h"
#include "data/lmdb_writer.h"
#include "data/record_writer.h"
#include "data/samples.h"
#include "data/window_file.h"
#include "model/filter.h"
#include "model/hdf5_appender.h"
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

// Blobs of gigabytes that were asked for, or tables for them, are no finding; sanitizers limit what may be allocated.
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
  auto net = parseText<caffe::NetParameter>(text, "fuzzed");
  upgradeNet(&net, "fuzzed");
  if (huge(net)) return;
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

// A LevelDB of several files; an input is one of them, behind a byte that says which.
class LevelDbFiles {
 public:
  explicit LevelDbFiles(const std::string& folder) : path_(folder + "/leveldb") {
    const auto writer = makeRecordWriter(caffe::DataParameter::LEVELDB, path_);
    for (int i = 0; i < 300; ++i)
      writer->put(fmt::format("{:08d}", i),
                  std::string(static_cast<size_t>(10 + i % 90), static_cast<char>('a' + i % 26)));
    writer->finish();
    for (const auto& f : fs::directory_iterator(path_)) names_.push_back(f.path());
    std::sort(names_.begin(), names_.end());
    for (const auto& f : names_) whole_.push_back(readFile(f));
  }
  std::vector<std::string> seeds() const {
    std::vector<std::string> all;
    for (size_t i = 0; i < names_.size(); ++i) all.push_back(static_cast<char>(i) + whole_[i]);
    return all;
  }
  void read(const std::string& bytes) const {
    const size_t which = bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]) % names_.size();
    std::ofstream(names_[which], std::ios::binary) << bytes.substr(bytes.empty() ? 0 : 1);
    const auto restore = [&] { std::ofstream(names_[which], std::ios::binary) << whole_[which]; };
    try {
      const auto source = levelDbSource(path_);
      for (int64_t i = 0; i < source->size(); ++i) source->read(i);
    } catch (...) {
      restore();
      throw;
    }
    restore();
  }

 private:
  std::string path_;
  std::vector<std::string> names_, whole_;
};

// An HDF5 file of rows as HDF5Output writes it, for HDF5Data.
std::string rowsFile(const std::string& path) {
  const std::vector<float> values(40 * 6, 0.5f);
  {
    Hdf5Appender out(path);
    out.append({{"data", {40, 3, 2}, false, values.data()}, {"label", {40}, false, values.data()}});
  }
  return readFile(path);
}

void readHdf5Rows(const std::string& path, const std::string& list) {
  std::ofstream(list) << path;
  const Hdf5Data data = openHdf5Data(list, {"data", "label"}, false);
  for (int64_t i = 0; i < std::min<int64_t>(data.rows->size(), 100); ++i) data.rows->read(i);
}

void readWindows(const std::string& path) {
  WindowOptions o;
  o.param.set_source(path);
  const WindowFile file(o);
  for (int64_t i = 0; i < file.size(); ++i) {
    Window w;
    std::memcpy(&w, file.read(i).value.data(), sizeof w);
    for (const bool square : {false, true}) {
      try {
        placeWindow(w, 100, 120, 20, 2, square, i % 2 == 1);
      } catch (const Error&) {  // a window beside the image: the next may lie in it
      }
    }
  }
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
  const auto levelDb = std::make_shared<LevelDbFiles>(folder);
  all.push_back({"leveldb", levelDb->seeds(), {}, [=](const std::string& bytes) { levelDb->read(bytes); }, 5});
  all.push_back(
      {"imagelist", {"photos/a b.jpg 3\nc.png 0\r\n\n/d/e.jpeg -7\n"}, {}, inFile("list", [](const std::string& path) {
         const ImageList list(path);
         for (int64_t i = 0; i < list.size(); ++i) list.at(i);
       })});
  all.push_back(
      {"windows",
       {"# 0\na.jpg\n3 100 120\n3\n1 0.9 5 6 50 60\n0 0.1 0 0 20 10\n2 0.6 90 80 119 99\n# 1\nb c.jpg\n3 8 9\n0\n"},
       {},
       inFile("windows", readWindows)});
  all.push_back({"mnist",
                 {std::string("\0\0\x08\x03\0\0\0\x02\0\0\0\x03\0\0\0\x02", 16) + std::string(12, 'p')},
                 {},
                 inFile("images", [](const std::string& path) { readIdxImages(path); })});
  all.push_back({"hdf5rows",
                 {rowsFile(folder + "/good.h5")},
                 {},
                 inFile("rows.h5", [=](const std::string& path) { readHdf5Rows(path, folder + "/rows.txt"); }),
                 50});
  return all;
}

}  // namespace crema::fuzz
