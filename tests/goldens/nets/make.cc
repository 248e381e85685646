// make NET OUT: NET through BVLC Caffe in double, forward and back, from the weights and inputs of golden::fillNet.
// OUT: the golden::summary of output blobs, of gradients of input blobs and of parameters.
#include <caffe/caffe.hpp>

#include "../../support/golden_values.h"

int main(int, char** argv) {
  caffe::Net<double> net(argv[1], caffe::TRAIN);
  const auto fill = [](caffe::Blob<double>& b, bool diff, const golden::Filling& how) {
    double* to = diff ? b.mutable_cpu_diff() : b.mutable_cpu_data();
    for (int k = 0; k < b.count(); ++k) to[k] = how.at(k);
  };
  for (size_t i = 0; i < net.learnable_params().size(); ++i) {
    auto& p = *net.learnable_params()[i];
    fill(p, false, golden::ofParameter(static_cast<int>(i), p.shape()));
  }
  for (size_t l = 0; l < net.layers().size(); ++l)  // running statistics begin at zero
    if (std::string(net.layers()[l]->type()) == "BatchNorm")
      for (auto& b : net.layers()[l]->blobs()) caffe::caffe_set(b->count(), 0., b->mutable_cpu_data());
  for (size_t i = 0; i < net.input_blobs().size(); ++i)
    fill(*net.input_blobs()[i], false, golden::ofInput(static_cast<int>(i), net.input_blobs()[i]->num_axes()));
  net.ClearParamDiffs();
  net.Forward();
  for (size_t i = 0; i < net.output_blobs().size(); ++i)
    if (net.output_blobs()[i]->num_axes()) fill(*net.output_blobs()[i], true, golden::ofOutput(static_cast<int>(i)));
  net.Backward();
  golden::Arrays arrays;
  const auto keep = [&](int count, const double* values) { arrays.push_back(golden::summary(values, count)); };
  for (auto* b : net.output_blobs()) keep(b->count(), b->cpu_data());
  for (auto* b : net.input_blobs()) keep(b->count(), b->cpu_diff());
  for (auto* b : net.learnable_params()) keep(b->count(), b->cpu_diff());
  std::ofstream out(argv[2], std::ios::binary);
  golden::write(out, arrays);
  return out ? 0 : 1;
}
