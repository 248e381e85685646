// A net of a host program (jcaffe): which values it gets.
#include "host/client_net.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/shared_data.h"

namespace crema::host {
namespace {

const char* const kNet = R"(
layer { name: 'data' type: 'MemoryData' top: 'data' top: 'label'
        memory_data_param { batch_size: 2 channels: 3 height: 1 width: 1 } }
layer { name: 'a' type: 'Eltwise' bottom: 'data' bottom: 'data' top: 'a' }
layer { name: 'b' type: 'Eltwise' bottom: 'a' bottom: 'a' top: 'b' }
layer { name: 'c' type: 'Eltwise' bottom: 'b' bottom: 'b' top: 'c' }
layer { name: 'd' type: 'Eltwise' bottom: 'c' bottom: 'c' top: 'd' }
layer { name: 'ip' type: 'InnerProduct' bottom: 'd' top: 'ip' inner_product_param { num_output: 3 } }
layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' })";

void add(const std::vector<float>& values, const std::vector<int>& dims, engine::Predict* to) {
  engine::Blob* blob = to->add_data();
  for (const int d : dims) blob->add_dim(d);
  blob->set_data(values.data(), values.size() * sizeof(float));
}

// Sums, which no backward pass reads: a plan for training would give their memory away.
TEST(ClientNet, ATrainNetGivesAnyBlobAsItIsBehindThePass) {
  test::TemporaryFolder folder;
  const std::string solver = folder.file("solver.prototxt");
  writeFileAtomically(solver, std::string("net_param {") + kNet + "} base_lr: 0.1 lr_policy: 'fixed' max_iter: 10");
  engine::Open open;
  open.set_solver(solver), open.set_training(true), open.set_threads(1);
  const Interrupt interrupt;
  ClientNet net(open, interrupt);
  engine::Predict request;
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  add(x, {2, 3, 1, 1}, &request);
  add({0, 1}, {2, 1, 1, 1}, &request);
  for (const char* name : {"data", "a", "b", "c", "d"}) request.add_name(name);
  engine::Blobs answer;
  net.predict(request, &answer);
  ASSERT_EQ(answer.blob_size(), 5);
  for (int i = 0; i < 5; ++i) {
    std::vector<float> want(x);
    for (float& v : want) v *= static_cast<float>(1 << i);
    const std::string& data = answer.blob(i).data();
    EXPECT_EQ(data, std::string(reinterpret_cast<const char*>(want.data()), want.size() * sizeof(float)))
        << request.name(i);
  }
}

}  // namespace
}  // namespace crema::host
