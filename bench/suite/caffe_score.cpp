// BVLC Caffe as a contestant of scoring: caffe_score FOLDER BATCH
//
// Its own program `time` has no way to leave the backward pass out. Says what measure.py's contestants say: a line of
// JSON with milliseconds of a forward pass, largest resident memory, and the probabilities' largest distance from ours.

#include <algorithm>
#include <caffe/caffe.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

// Floats of an array that NumPy saved (format 1.0: 8 bytes of magic, a little-endian 16-bit size of the header).
std::vector<float> saved(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::uint8_t head[10] = {};
  CHECK(file.read(reinterpret_cast<char*>(head), sizeof head)) << path;
  const std::streamoff start = 10 + head[8] + 256 * head[9];
  file.seekg(0, std::ios::end);
  std::vector<float> values((file.tellg() - start) / sizeof(float));
  file.seekg(start);
  CHECK(file.read(reinterpret_cast<char*>(values.data()), values.size() * sizeof(float))) << path;
  return values;
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// As measure.py: the median of five rounds of a second or of one step, after two steps and half a second.
double milliseconds(caffe::Net<float>& net) {
  int steps = 0;
  double start = seconds();
  for (; steps < 2 || seconds() - start < 0.5; ++steps) net.Forward();
  const int round = std::max(1, static_cast<int>(std::lround(steps / (seconds() - start))));
  std::vector<double> rounds;
  for (int r = 0; r < 5; ++r) {
    start = seconds();
    for (int i = 0; i < round; ++i) net.Forward();
    rounds.push_back((seconds() - start) / round * 1e3);
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[2];
}

double peakMib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) / 1024;
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  CHECK_EQ(count, 3) << "caffe_score FOLDER BATCH";
  FLAGS_minloglevel = 2;
  google::InitGoogleLogging(arguments[0]);
  const std::string folder = arguments[1];
  caffe::Net<float> net(folder + "/deploy_" + arguments[2] + ".prototxt", caffe::TEST);
  net.CopyTrainedLayersFrom(folder + "/weights.caffemodel");
  {
    const std::vector<float> pictures = saved(folder + "/pictures.npy");
    caffe::Blob<float>& data = *net.input_blobs()[0];
    std::copy_n(pictures.data(), data.count(), data.mutable_cpu_data());
  }
  const caffe::Blob<float>& answer = *net.Forward()[0];
  const std::vector<float> ours = saved(folder + "/probabilities.npy");
  float apart = 0;
  for (int i = 0; i < answer.count(); ++i) apart = std::max(apart, std::abs(answer.cpu_data()[i] - ours[i]));
  std::printf("{\"ms\": %.6g, \"apart\": %.3g, \"peak_mib\": %.1f}\n", milliseconds(net), apart, peakMib());
}
