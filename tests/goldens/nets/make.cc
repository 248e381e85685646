// make NET OUT: NET through BVLC Caffe, forward and back. OUT: a number of arrays, then each as float32 values behind
// their count (counts uint32, little endian): output blobs, gradients of input blobs, gradients of parameters.
#include <caffe/caffe.hpp>

#include "../../support/golden_values.h"

int main(int, char** argv) {
  caffe::Net<float> net(argv[1], caffe::TRAIN);
  const auto fill = [](caffe::Blob<float>& b, int which, bool diff) {
    float* to = diff ? b.mutable_cpu_diff() : b.mutable_cpu_data();
    for (int k = 0; k < b.count(); ++k) to[k] = golden::value("s", which, k) / 2;
  };
  for (size_t i = 0; i < net.learnable_params().size(); ++i)
    fill(*net.learnable_params()[i], 100 + static_cast<int>(i), false);
  for (size_t i = 0; i < net.input_blobs().size(); ++i) fill(*net.input_blobs()[i], static_cast<int>(i), false);
  net.ClearParamDiffs();
  net.Forward();
  for (size_t i = 0; i < net.output_blobs().size(); ++i) fill(*net.output_blobs()[i], 200 + static_cast<int>(i), true);
  net.Backward();
  golden::Arrays arrays;
  for (auto* b : net.output_blobs()) arrays.emplace_back(b->cpu_data(), b->cpu_data() + b->count());
  for (auto* b : net.input_blobs()) arrays.emplace_back(b->cpu_diff(), b->cpu_diff() + b->count());
  for (auto* b : net.learnable_params()) arrays.emplace_back(b->cpu_diff(), b->cpu_diff() + b->count());
  std::ofstream out(argv[2], std::ios::binary);
  golden::write(out, arrays);
  return out ? 0 : 1;
}
