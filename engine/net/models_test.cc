// Whole nets against what BVLC Caffe and OpenCV computed from them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <regex>

#include "base/file.h"
#include "model/proto_io.h"
#include "model/upgrade.h"
#include "net/net.h"
#include "support/golden_values.h"
#include "support/shared_data.h"

namespace crema {
namespace {

struct Array {
  std::vector<int> shape;
  std::vector<float> values;
};

// A float32 .npy in C order.
Array readNpy(const std::string& path) {
  const std::string bytes = readFile(path);
  const size_t start = 10 + static_cast<unsigned char>(bytes[8]) + 256 * static_cast<unsigned char>(bytes[9]);
  const std::string header = bytes.substr(10, start - 10);
  Array a;
  const std::string shape = header.substr(header.find('(') + 1);
  const std::regex number("[0-9]+");
  const std::string dims = shape.substr(0, shape.find(')'));
  for (std::sregex_iterator i(dims.begin(), dims.end(), number), end; i != end; ++i)
    a.shape.push_back(std::stoi(i->str()));
  a.values.resize((bytes.size() - start) / 4);
  std::memcpy(a.values.data(), bytes.data() + start, a.values.size() * 4);
  return a;
}

void fill(Blob& blob, int which, bool diff) {
  float* to = diff ? blob.mutableDiff<float>() : blob.mutableData<float>();
  for (int k = 0; k < blob.count(); ++k) to[k] = golden::value("s", which, k) / 2;
}

class Comparison {
 public:
  explicit Comparison(const std::string& file) : golden_(readFile(file)), wanted_(golden_.next()) {}
  void check(const Blob& got, bool diff, const std::string& what) {
    ASSERT_LT(arrays_, wanted_.size()) << what;
    const std::vector<float>& want = wanted_[arrays_++];
    ASSERT_EQ(static_cast<size_t>(got.count()), want.size()) << what;
    double largest = 1e-3, apart = 0;
    for (size_t k = 0; k < want.size(); ++k) {
      const int i = static_cast<int>(k);
      largest = std::max(largest, static_cast<double>(std::fabs(want[k])));
      apart = std::max(apart, std::fabs((diff ? got.diffAt(i) : got.dataAt(i)) - want[k]));
    }
    EXPECT_LE(apart / largest, 1e-5) << what;
    worst_ = std::max(worst_, apart / largest);
  }
  void done(const std::string& name) const {
    EXPECT_EQ(arrays_, wanted_.size());
    EXPECT_TRUE(golden_.ended());
    std::printf("differential net %-20s %2zu arrays, largest error %.1e\n", name.c_str(), arrays_, worst_);
  }

 private:
  golden::Reader golden_;
  golden::Arrays wanted_;
  size_t arrays_ = 0;
  double worst_ = 0;
};

// tests/goldens/nets/make.cc does the same with BVLC Caffe.
void compareWithCaffe(const std::string& name) {
  const std::string path = CREMA_SOURCE_DIR "/tests/goldens/nets/" + name;
  kernels::Context kernels(kernels::bestIsa(), 2);
  NetOptions o;
  o.kernels = &kernels;
  caffe::NetState state;
  state.set_phase(caffe::TRAIN);
  Net net(readNet(path + ".prototxt"), state, o, path + ".prototxt");
  int which = 100;
  for (const auto& p : net.learnables()) fill(*p.blob, which++, false);
  which = 0;
  for (Blob* b : net.tops(0)) fill(*b, which++, false);
  net.clearParamDiffs();
  net.forward();
  which = 200;
  for (const auto& b : net.outputs()) fill(net.blob(b), which++, true);
  net.backward();
  Comparison c(path + ".golden");
  for (const auto& b : net.outputs()) c.check(net.blob(b), false, b);
  for (const Blob* b : net.tops(0)) c.check(*b, true, "gradient of an input blob");
  for (const auto& p : net.learnables()) c.check(*p.blob, true, "gradient of " + p.label);
  c.done(name);
}

// What OpenCV (module dnn) computed with MTCNN's trained weights; a second computation in double is within 2e-6 of it
// (README of the shared data).
void compareWithOpenCv(const std::string& name, const std::string& description, const std::string& outputs,
                       const std::vector<const char*>& blobs) {
  kernels::Context kernels(kernels::bestIsa(), 2);
  caffe::NetParameter p = readNet(description);
  const Array input = readNpy(outputs + "/input.npy");
  auto* shape = p.mutable_layer(0)->mutable_input_param()->mutable_shape(0);  // det1 takes pictures of any size
  shape->clear_dim();
  for (const int d : input.shape) shape->add_dim(d);
  NetOptions o;
  o.kernels = &kernels;
  caffe::NetState state;
  state.set_phase(caffe::TEST);
  Net net(p, state, o, description);
  copyTrainedFiles(net, description.substr(0, description.rfind('.')) + ".caffemodel");
  std::copy(input.values.begin(), input.values.end(), net.blob("data").mutableData<float>());
  net.forward();
  for (const char* blob : blobs) {
    const Array want = readNpy(outputs + "/" + blob + ".npy");
    const Blob& got = net.blob(blob);
    ASSERT_EQ(static_cast<size_t>(got.count()), want.values.size()) << blob;
    double apart = 0;
    for (int i = 0; i < got.count(); ++i)
      apart = std::max(apart, std::fabs(got.dataAt(i) - want.values[static_cast<size_t>(i)]));
    std::printf("differential net %s %s: largest difference %.1e\n", name.c_str(), blob, apart);
    EXPECT_LE(apart, 5e-6) << blob;
  }
}

TEST(Models, GiveWhatOthersComputed) {
  for (const char* name : {"proposals", "residual"}) {
    SCOPED_TRACE(name);
    compareWithCaffe(name);
  }
  const struct {
    const char* net;
    std::vector<const char*> blobs;
  } trained[] = {{"det1", {"pool1", "conv4-2", "prob1"}}, {"det2", {"pool2", "conv5-2", "prob1"}}};
  for (const auto& m : trained) {
    SCOPED_TRACE(m.net);
    const auto description = test::sharedData(std::string("models/mtcnn/") + m.net + ".prototxt");
    const auto outputs = test::sharedData(std::string("reference_outputs/mtcnn_") + m.net);
    if (description && outputs)
      compareWithOpenCv(m.net, *description, *outputs, m.blobs);
    else
      std::printf("SKIPPED: %s with its trained weights: they are not here\n", m.net);
  }
}

}  // namespace
}  // namespace crema
