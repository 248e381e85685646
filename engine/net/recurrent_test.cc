// Nets over sequences: BVLC Caffe's values, forward and backward, over three batches that continue each other; the
// formulas in plain loops; and with which state a batch starts.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "model/proto_io.h"
#include "model/upgrade.h"
#include "net/net.h"
#include "support/isas_here.h"
#include "support/values_of.h"

namespace crema::net {
namespace {

const std::string kGoldens = CREMA_SOURCE_DIR "/tests/goldens/lstm/";

void set(Blob& b, const std::function<double(int)>& value, bool diff = false) {
  withType(b.dtype(), [&]<class T>() {
    for (int i = 0; i < b.count(); ++i) (diff ? b.mutableDiff<T>() : b.mutableData<T>())[i] = static_cast<T>(value(i));
  });
}

class RecurrentTest : public testing::Test {
 protected:
  std::unique_ptr<Net> make(const caffe::NetParameter& p, DType dtype = DType::kFloat32, bool shared = false,
                            int ranks = 2) {
    NetOptions o;
    o.kernels = &kernels_, o.dtype = dtype, o.data.ranks = ranks;
    if (shared) o.data.use = layers::PassUse::kSharedTest;
    caffe::NetState state;
    state.set_phase(caffe::TRAIN);
    return std::make_unique<Net>(p, state, o, "test.prototxt");
  }
  std::unique_ptr<Net> golden(const std::string& name, bool shared = false, int ranks = 2) {
    auto net = make(model::readNet(kGoldens + name + ".prototxt"), DType::kFloat32, shared, ranks);
    net->copyTrainedFrom(model::readNetBinary(kGoldens + name + ".caffemodel"), name);
    return net;
  }
  // The formulas of tests/goldens/lstm/make.cc.
  static void feed(Net& net, int batch) {
    for (const Blob* b : net.tops(0)) {
      std::string name;
      for (const auto& n : net.blobNames())
        if (&net.blob(n) == b) name = n;
      set(net.blob(name), [&](int i) -> double {
        if (name == "words") return (3 * i + batch) % 5;
        if (name == "cont") return i < 2 ? batch > 0 && (i + batch) % 3 != 2 : (5 * i + batch) % 4 != 0;
        return std::sin(0.7 * i + batch + static_cast<double>(name.size()) + name[0] % 7);
      });
    }
  }
  std::vector<double> pass(Net& net, int batch, int64_t step, int rank) {
    feed(net, batch);
    net.setStep(step, rank);
    net.forward();
    return test::valuesOf(net.blob("predict"));
  }
  kernels::Context kernels_{kernels::bestIsa(), 2};
};

// batch -> "blob data" or "blob diff" -> values
using Lines = std::map<std::string, std::vector<double>>;
std::map<int, Lines> readLines(const std::string& path) {
  std::map<int, Lines> all;
  std::istringstream file(readFile(path));
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    int batch = 0;
    std::string name, what;
    line >> batch >> name >> what;
    auto& values = all[batch][name + " " + what];
    for (double v = 0; line >> v;) values.push_back(v);
  }
  return all;
}

TEST_F(RecurrentTest, ThreeBatchesAsCaffeComputedThem) {
  for (const std::string name : {"sentences", "exposed"}) {
    SCOPED_TRACE(name);
    auto net = golden(name);
    const auto all = readLines(kGoldens + name + ".txt");
    ASSERT_EQ(all.size(), 3u);
    for (const auto& [batch, lines] : all) {
      feed(*net, batch);
      net->setStep(batch, 0);
      net->clearParamDiffs();
      net->forward();
      for (const auto& output : net->outputs())
        set(
            net->blob(output), [&](int i) { return std::cos(0.3 * i + batch); }, true);
      net->backward();
      for (const auto& [line, want] : lines) {
        const std::string blob = line.substr(0, line.find(' '));
        const size_t slash = blob.find('/');
        const Blob* b = slash == std::string::npos ? &net->blob(blob) : nullptr;
        for (const auto& layer : net->layers())
          if (!b && layer->name() == blob.substr(0, slash))
            b = layer->params()[static_cast<size_t>(std::stoi(blob.substr(slash + 1)))].get();
        const auto got = test::valuesOf(*b, line.find(" diff") != std::string::npos);
        ASSERT_EQ(got.size(), want.size()) << line;
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_NEAR(got[i], want[i], 1e-6 * std::max(1.0, std::fabs(want[i]))) << "batch " << batch << ", " << line;
      }
    }
  }
}

TEST_F(RecurrentTest, ModelsAreStoredAsCaffeStoresThem) {
  const caffe::NetParameter stored = model::readNetBinary(kGoldens + "sentences.caffemodel");
  const caffe::NetParameter ours = golden("sentences")->toProto(false);
  int compared = 0;
  for (const auto& layer : stored.layer())
    for (const auto& mine : ours.layer()) {
      if (mine.name() != layer.name()) continue;
      ASSERT_EQ(mine.blobs_size(), layer.blobs_size()) << layer.name();
      for (int i = 0; i < layer.blobs_size(); ++i, ++compared)
        EXPECT_EQ(model::toText(mine.blobs(i)), model::toText(layer.blobs(i))) << layer.name() << "/" << i;
    }
  EXPECT_EQ(compared, 11);  // 2 of embed, 4 and 3 of the LSTMs, 2 of predict
}

// Two ranks that take turns in one net get what two nets would compute. State is reset after a jump in steps, and for
// batches that are sharded over workers.
TEST_F(RecurrentTest, EveryRankGoesOnWithItsOwnState) {
  auto shared = golden("sentences"), first = golden("sentences"), second = golden("sentences");
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(pass(*shared, step, step, 0), pass(*first, step, step, 0));
    EXPECT_EQ(pass(*shared, 2 - step, step, 1), pass(*second, 2 - step, step, 1));
  }
  auto fresh = golden("sentences"), apart = golden("sentences", true), alone = golden("sentences", false, 1);
  const auto zero = pass(*fresh, 2, 7, 0);
  EXPECT_NE(pass(*first, 2, 3, 0), zero);  // goes on
  EXPECT_EQ(pass(*first, 2, 9, 0), zero);  // 3 to 9
  EXPECT_NE(pass(*first, 2, 9, 0), zero);  // the same step again, as a host that does not count steps
  EXPECT_EQ(pass(*first, 2, 9, 1), zero);  // another rank
  EXPECT_EQ(pass(*alone, 2, 7, 0), zero);
  EXPECT_NE(pass(*alone, 2, 12, 0), zero);  // one rank: continues its own last pass
  EXPECT_EQ(pass(*apart, 2, 0, 0), zero);
  EXPECT_EQ(pass(*apart, 2, 1, 0), zero);
}

// Backward uses the state of its own forward pass: a rank's gradients do not depend on other ranks in the same net.
TEST_F(RecurrentTest, GradientsOfARankAreItsOwn) {
  auto shared = golden("sentences"), alone = golden("sentences");
  const auto gradient = [&](Net& net, int step, int rank) {
    net.clearParamDiffs();
    pass(net, step, step, rank);
    net.backward();
    return test::valuesOf(net.flatDiff(), true);
  };
  for (int step = 0; step < 3; ++step) {
    const auto want = gradient(*alone, step, 0);
    EXPECT_EQ(gradient(*shared, step, 0), want) << step;
    gradient(*shared, step, 1);
  }
}

const char* const kWide = R"(
layer { name: "in" type: "Input" top: "x" top: "cont" top: "fixed"
        input_param { shape { dim: 5 dim: 3 dim: 2 dim: 9 } shape { dim: 5 dim: 3 } shape { dim: 3 dim: 4 } } }
layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" bottom: "fixed" top: "h" loss_weight: 1
        recurrent_param { num_output: 37 weight_filler { type: "uniform" min: -0.4 max: 0.4 } bias_filler { type: "gaussian" std: 1 } } }
)";

// h of kWide, element by element, by the formulas of the layer's manual.
std::vector<double> byHand(Net& net, int T, int N, int I, int S, int H) {
  const auto x = test::valuesOf(net.blob("x")), cont = test::valuesOf(net.blob("cont")),
             fixed = test::valuesOf(net.blob("fixed"));
  std::vector<std::vector<double>> w;
  for (const auto& p : net.layers()[1]->params()) w.push_back(test::valuesOf(*p));
  std::vector<double> all, h(static_cast<size_t>(N * H), 0.0), c = h;
  const auto at = [](int row, int width, int k) { return static_cast<size_t>(row * width + k); };
  const auto squash = [](double a) { return 1 / (1 + std::exp(-a)); };
  for (int t = 0; t < T; ++t) {
    const auto h0 = h;
    for (int n = 0; n < N; ++n)
      for (int k = 0; k < H; ++k) {
        double a[4];
        for (int gate = 0; gate < 4; ++gate) {
          const int r = gate * H + k;
          a[gate] = w[1][static_cast<size_t>(r)];
          for (int i = 0; i < I; ++i) a[gate] += w[0][at(r, I, i)] * x[at(t * N + n, I, i)];
          for (int i = 0; i < S; ++i) a[gate] += w[2][at(r, S, i)] * fixed[at(n, S, i)];
          for (int i = 0; i < H; ++i) a[gate] += w[3][at(r, H, i)] * h0[at(n, H, i)] * cont[at(t, N, n)];
        }
        double& cell = c[at(n, H, k)];
        cell = cont[at(t, N, n)] * squash(a[1]) * cell + squash(a[0]) * std::tanh(a[3]);
        h[at(n, H, k)] = squash(a[2]) * std::tanh(cell);
      }
    all.insert(all.end(), h.begin(), h.end());
  }
  return all;
}

TEST_F(RecurrentTest, TheFormulasOnOddSizes) {
  auto exact = make(model::parseText<caffe::NetParameter>(kWide, "wide"), DType::kFloat64);
  auto fast = make(model::parseText<caffe::NetParameter>(kWide, "wide"));
  for (Net* net : {exact.get(), fast.get()}) {
    feed(*net, 0);
    net->forward();
  }
  const auto want = byHand(*exact, 5, 3, 18, 4, 37), got = test::valuesOf(exact->blob("h"));
  const auto inFloat = test::valuesOf(fast->blob("h"));
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 1e-12);
    EXPECT_NEAR(inFloat[i], want[i], 5e-6);
  }
}

// Values and gradients have the same bits for any number of threads and on any instruction set.
TEST_F(RecurrentTest, BitsDoNotDependOnTheMachine) {
  std::vector<std::vector<double>> all;
  for (const int threads : {1, 2, 3})
    for (const kernels::Isa* isa : kernels::isasHere()) {
      kernels::Context context(*isa, threads);
      NetOptions o;
      o.kernels = &context;
      caffe::NetState state;
      state.set_phase(caffe::TRAIN);
      Net net(model::parseText<caffe::NetParameter>(kWide, "wide"), state, o, "wide");
      for (int batch = 0; batch < 2; ++batch) {
        feed(net, batch + 1);
        net.setStep(batch, 0);
        net.forward();
        net.backward();
      }
      all.push_back(test::valuesOf(net.blob("h")));
      const auto gradient = test::valuesOf(net.flatDiff(), true);
      all.back().insert(all.back().end(), gradient.begin(), gradient.end());
    }
  for (const auto& one : all) EXPECT_EQ(one, all[0]);
}

}  // namespace
}  // namespace crema::net
