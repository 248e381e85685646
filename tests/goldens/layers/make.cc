// make CASES OUT: every case through BVLC Caffe's layer. OUT holds, per case, a number of arrays, and these: float32
// values behind their count (all counts uint32, little endian). Tops; then, with a backward pass, gradients of the
// bottoms that take one and of all parameters; then the parameters.
#include <google/protobuf/text_format.h>
#include <caffe/caffe.hpp>
#include <caffe/layer_factory.hpp>

#include "../../support/golden_values.h"

namespace {

using Blobs = std::vector<caffe::Blob<float>*>;

using golden::Arrays;

void put(Arrays& out, int count, const float* values) { out.emplace_back(values, values + count); }

void run(const golden::Case& c, Arrays& out) {
  caffe::LayerParameter p;
  if (!google::protobuf::TextFormat::ParseFromString(c.layer, &p)) throw std::runtime_error("cannot parse " + c.name);
  p.set_name("layer");
  p.set_phase(c.test ? caffe::TEST : caffe::TRAIN);
  Blobs bottom, top;
  for (size_t i = 0; i < c.shapes.size(); ++i) {
    bottom.push_back(new caffe::Blob<float>(c.shapes[i]));
    p.add_bottom("bottom" + std::to_string(i));
    for (int k = 0; k < bottom[i]->count(); ++k)
      bottom[i]->mutable_cpu_data()[k] = golden::value(c.fillings[i], static_cast<int>(i), k);
  }
  if (p.top_size() == 0) p.add_top("top");
  for (int i = 0; i < p.top_size(); ++i) top.push_back(new caffe::Blob<float>());
  auto layer = caffe::LayerRegistry<float>::CreateLayer(p);
  layer->SetUp(bottom, top);
  for (size_t i = 0; i < layer->blobs().size(); ++i)
    for (int k = 0; k < layer->blobs()[i]->count(); ++k)
      layer->blobs()[i]->mutable_cpu_data()[k] = golden::value(c.params, 100 + static_cast<int>(i), k);
  layer->Forward(bottom, top);
  for (auto* t : top) put(out, t->count(), t->cpu_data());
  if (c.backward) {
    for (size_t t = 0; t < top.size(); ++t)
      if (layer->loss(static_cast<int>(t)) == 0)
        for (int k = 0; k < top[t]->count(); ++k)
          top[t]->mutable_cpu_diff()[k] = golden::value("s", 200 + static_cast<int>(t), k);
    std::vector<bool> down;
    for (const auto& filling : c.fillings) down.push_back(golden::hasGradient(filling));
    for (int i = 0; i < p.propagate_down_size(); ++i) down[i] = p.propagate_down(i);
    layer->Backward(top, down, bottom);
    for (size_t i = 0; i < bottom.size(); ++i)
      if (down[i]) put(out, bottom[i]->count(), bottom[i]->cpu_diff());
    for (auto& b : layer->blobs()) put(out, b->count(), b->cpu_diff());
  }
  for (auto& b : layer->blobs()) put(out, b->count(), b->cpu_data());
}

}  // namespace

int main(int, char** argv) {
  caffe::Caffe::set_random_seed(1);
  std::ofstream out(argv[2], std::ios::binary);
  for (const auto& c : golden::cases(argv[1])) {
    std::fprintf(stderr, "%s\n", c.name.c_str());
    Arrays arrays;
    run(c, arrays);
    golden::write(out, arrays);
  }
  return out ? 0 : 1;
}
