// make.cc NET: NET.prototxt through BVLC Caffe, three batches forward and backward. Writes NET.caffemodel (weights as
// Caffe's fillers draw them) and NET.txt: a line `batch blob data|diff values` for every blob and for the gradient of
// every parameter, `layer/number`. Inputs are the formulas of `input`, which engine/net/recurrent_test.cc repeats.
#include <caffe/caffe.hpp>

#include <cmath>
#include <cstdio>
#include <string>

namespace {

double input(const std::string& name, int i, int batch) {
  if (name == "words") return (3 * i + batch) % 5;
  if (name == "cont") return i < 2 ? batch > 0 && (i + batch) % 3 != 2 : (5 * i + batch) % 4 != 0;
  return std::sin(0.7 * i + batch + name.size() + name[0] % 7);
}

void line(std::FILE* out, int batch, const std::string& name, const char* what, int count, const float* values) {
  std::fprintf(out, "%d %s %s", batch, name.c_str(), what);
  for (int i = 0; i < count; ++i) std::fprintf(out, " %.9g", values[i]);
  std::fprintf(out, "\n");
}

}  // namespace

int main(int, char** argv) {
  const std::string name = argv[1];
  caffe::Caffe::set_random_seed(1);
  caffe::Net<float> net(name + ".prototxt", caffe::TRAIN);
  caffe::NetParameter weights;
  net.ToProto(&weights);
  caffe::WriteProtoToBinaryFile(weights, name + ".caffemodel");
  std::FILE* out = std::fopen((name + ".txt").c_str(), "w");
  for (int batch = 0; batch < 3; ++batch) {
    for (int b : net.input_blob_indices())
      for (int i = 0; i < net.blobs()[b]->count(); ++i)
        net.blobs()[b]->mutable_cpu_data()[i] = input(net.blob_names()[b], i, batch);
    net.ClearParamDiffs();
    net.Forward();
    for (int b : net.output_blob_indices())
      for (int i = 0; i < net.blobs()[b]->count(); ++i)
        net.blobs()[b]->mutable_cpu_diff()[i] = std::cos(0.3 * i + batch);
    net.Backward();
    for (size_t b = 0; b < net.blobs().size(); ++b) {
      const std::string& blob = net.blob_names()[b];
      if (blob.find("_split_") != std::string::npos) continue;
      line(out, batch, blob, "data", net.blobs()[b]->count(), net.blobs()[b]->cpu_data());
      line(out, batch, blob, "diff", net.blobs()[b]->count(), net.blobs()[b]->cpu_diff());
    }
    for (size_t l = 0; l < net.layers().size(); ++l)
      for (size_t p = 0; p < net.layers()[l]->blobs().size(); ++p) {
        const auto& blob = *net.layers()[l]->blobs()[p];
        line(out, batch, net.layer_names()[l] + "/" + std::to_string(p), "diff", blob.count(), blob.cpu_diff());
      }
  }
  return std::fclose(out);
}
