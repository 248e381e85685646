// make CASES OUT: every case through BVLC Caffe's layer. OUT holds, per case, a number of arrays, and these: float32
// values behind their count (all counts uint32, little endian). Tops of each pass; then, with a backward pass,
// gradients of the bottoms that take one and of all parameters; then the parameters. Before the cases: what the data
// layers read, records (LMDB) and rows.h5, anew. Of an HDF5Output: what an HDF5Data finds in its file, behind its
// passes.
#include <google/protobuf/text_format.h>
#include <caffe/caffe.hpp>
#include <caffe/layer_factory.hpp>
#include <caffe/layers/memory_data_layer.hpp>
#include <caffe/util/db.hpp>

#include <filesystem>
#include <regex>

#include "../../support/golden_values.h"

namespace {

using Blobs = std::vector<caffe::Blob<float>*>;

using golden::Arrays;

void put(Arrays& out, int count, const float* values) { out.emplace_back(values, values + count); }

// Six records of 2 x 5 x 6 pixels and the labels 0 to 5.
caffe::Datum record(int number) {
  caffe::Datum d;
  d.set_channels(2), d.set_height(5), d.set_width(6), d.set_label(number);
  std::string pixels;
  for (int k = 0; k < 60; ++k) pixels += static_cast<char>(golden::value("l256", 300 + number, k));
  d.set_data(pixels);
  return d;
}

void makeRecords() {
  std::filesystem::remove_all("records");
  std::unique_ptr<caffe::db::DB> db(caffe::db::GetDB("lmdb"));
  db->Open("records", caffe::db::NEW);
  std::unique_ptr<caffe::db::Transaction> put(db->NewTransaction());
  for (int i = 0; i < 6; ++i) put->Put(std::to_string(i), record(i).SerializeAsString());
  put->Commit();
}

// Five rows of 2 x 3 and their numbers, by Caffe's own writer.
void makeRows() {
  caffe::LayerParameter p;
  p.set_type("HDF5Output"), p.set_name("rows"), p.mutable_hdf5_output_param()->set_file_name("rows.h5");
  caffe::Blob<float> data({5, 2, 3}), label({5});
  for (int k = 0; k < 30; ++k) data.mutable_cpu_data()[k] = golden::value("s", 400, k);
  for (int k = 0; k < 5; ++k) label.mutable_cpu_data()[k] = static_cast<float>(k);
  p.add_bottom("data"), p.add_bottom("label");
  const Blobs bottom = {&data, &label}, none;
  auto writer = caffe::LayerRegistry<float>::CreateLayer(p);
  writer->SetUp(bottom, none);
  writer->Forward(bottom, none);
  std::ofstream("rows.txt") << "rows.h5\n";
}

caffe::LayerParameter parsed(const golden::Case& c, const std::string& folder) {
  std::string text = golden::placed(c.layer, folder);
  // CaffeOnSpark's field: BVLC's MemoryData is handed its records by the program.
  if (text.find("MemoryData") != std::string::npos)
    text = std::regex_replace(text, std::regex("source: \"\\w+\" "), "");
  caffe::LayerParameter p;
  if (!google::protobuf::TextFormat::ParseFromString(text, &p)) throw std::runtime_error("cannot parse " + c.name);
  return p;
}

using Layer = caffe::Layer<float>;

void forward(const golden::Case& c, Layer& layer, const Blobs& bottom, const Blobs& top, Arrays& out) {
  if (auto* memory = dynamic_cast<caffe::MemoryDataLayer<float>*>(&layer)) {
    std::vector<caffe::Datum> records;
    for (int i = 0; i < 6; ++i) records.push_back(record(i));
    memory->AddDatumVector(records);
  }
  for (int pass = 0; pass < c.passes; ++pass) {
    layer.Forward(bottom, top);
    for (auto* t : top) put(out, t->count(), t->cpu_data());
  }
}

void backward(const golden::Case& c, Layer& layer, const Blobs& bottom, const Blobs& top, Arrays& out) {
  for (size_t t = 0; t < top.size(); ++t)
    if (layer.loss(static_cast<int>(t)) == 0)
      for (int k = 0; k < top[t]->count(); ++k)
        top[t]->mutable_cpu_diff()[k] = golden::value("s", 200 + static_cast<int>(t), k);
  const auto& p = layer.layer_param();
  std::vector<bool> down;
  for (const auto& filling : c.fillings) down.push_back(golden::hasGradient(filling));
  for (int i = 0; i < p.propagate_down_size(); ++i) down[i] = p.propagate_down(i);
  layer.Backward(top, down, bottom);
  for (size_t i = 0; i < bottom.size(); ++i)
    if (down[i]) put(out, bottom[i]->count(), bottom[i]->cpu_diff());
  for (auto& b : layer.blobs()) put(out, b->count(), b->cpu_diff());
}

void run(const golden::Case& c, const std::string& folder, Arrays& out) {
  caffe::LayerParameter p = parsed(c, folder);
  p.set_name("layer");
  p.set_phase(c.test ? caffe::TEST : caffe::TRAIN);
  Blobs bottom, top;
  for (size_t i = 0; i < c.shapes.size(); ++i) {
    bottom.push_back(new caffe::Blob<float>(c.shapes[i]));
    p.add_bottom("bottom" + std::to_string(i));
    for (int k = 0; k < bottom[i]->count(); ++k)
      bottom[i]->mutable_cpu_data()[k] = golden::value(c.fillings[i], static_cast<int>(i), k);
  }
  const int tops = golden::topsOf(p.type(), p.top_size());
  while (p.top_size() < tops) p.add_top("top");
  for (int i = 0; i < tops; ++i) top.push_back(new caffe::Blob<float>());
  auto layer = caffe::LayerRegistry<float>::CreateLayer(p);
  layer->SetUp(bottom, top);
  for (size_t i = 0; i < layer->blobs().size(); ++i)
    for (int k = 0; k < layer->blobs()[i]->count(); ++k)
      layer->blobs()[i]->mutable_cpu_data()[k] = golden::value(c.params, 100 + static_cast<int>(i), k);
  forward(c, *layer, bottom, top, out);
  if (c.backward) backward(c, *layer, bottom, top, out);
  for (auto& b : layer->blobs()) put(out, b->count(), b->cpu_data());
}

}  // namespace

int main(int, char** argv) {
  caffe::Caffe::set_random_seed(1);
  const std::string folder = "made";
  std::filesystem::create_directory(folder);
  makeRecords();
  if (!std::filesystem::exists("rows.h5")) makeRows();  // its bytes hold the time
  std::ofstream(folder + "/out.txt") << folder << "/out.h5\n";
  std::ofstream out(argv[2], std::ios::binary);
  for (const auto& c : golden::cases(argv[1])) {
    std::fprintf(stderr, "%s\n", c.name.c_str());
    Arrays arrays;
    run(c, folder, arrays);
    golden::write(out, arrays);
  }
  std::filesystem::remove_all(folder);
  std::filesystem::remove("records/lock.mdb");
  return out ? 0 : 1;
}
