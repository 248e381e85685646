// Trained nets of others, against what another implementation computed from them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <regex>

#include "base/file.h"
#include "model/proto_io.h"
#include "model/upgrade.h"
#include "net/net.h"
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

// Convolution, PReLU in place, max pooling, InnerProduct, Softmax. The outputs are OpenCV's (module dnn); a second
// computation in double is within 2e-6 of them (README of the shared data).
TEST(Models, MtcnnGivesWhatOpenCvGives) {
  kernels::Context kernels(kernels::bestIsa(), 2);
  const struct {
    const char* net;
    std::vector<const char*> blobs;
  } models[] = {{"det1", {"pool1", "conv4-2", "prob1"}}, {"det2", {"pool2", "conv5-2", "prob1"}}};
  for (const auto& m : models) {
    const auto description = test::sharedData(std::string("models/mtcnn/") + m.net + ".prototxt");
    const auto outputs = test::sharedData(std::string("reference_outputs/mtcnn_") + m.net);
    if (!description || !outputs) GTEST_SKIP() << "SKIPPED: no mtcnn";
    SCOPED_TRACE(m.net);
    caffe::NetParameter p = readNet(*description);
    const Array input = readNpy(*outputs + "/input.npy");
    auto* shape = p.mutable_layer(0)->mutable_input_param()->mutable_shape(0);  // det1 takes pictures of any size
    shape->clear_dim();
    for (const int d : input.shape) shape->add_dim(d);
    NetOptions o;
    o.kernels = &kernels;
    caffe::NetState state;
    state.set_phase(caffe::TEST);
    Net net(p, state, o, *description);
    copyTrainedFiles(net, description->substr(0, description->rfind('.')) + ".caffemodel");
    std::copy(input.values.begin(), input.values.end(), net.blob("data").mutableData<float>());
    net.forward();
    for (const char* name : m.blobs) {
      const Array want = readNpy(*outputs + "/" + name + ".npy");
      const Blob& got = net.blob(name);
      ASSERT_EQ(static_cast<size_t>(got.count()), want.values.size()) << name;
      double apart = 0;
      for (int i = 0; i < got.count(); ++i)
        apart = std::max(apart, std::fabs(got.dataAt(i) - want.values[static_cast<size_t>(i)]));
      std::cout << m.net << " " << name << ": largest difference " << apart << "\n";
      EXPECT_LE(apart, 5e-6) << name;
    }
  }
}

}  // namespace
}  // namespace crema
