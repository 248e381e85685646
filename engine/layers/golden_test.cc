// Every layer against BVLC Caffe, whose results tests/goldens/layers/caffe.golden holds (recipe beside it): tops,
// gradients, parameters, in float32, within 1e-5 of the array's largest value (at least 1e-3), which is what "relative"
// means here. The largest error of each case goes into the test's report (--gtest_output), and is printed.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "layers/registry.h"
#include "model/proto_io.h"
#include "support/golden_values.h"
#include "support/shared_data.h"

namespace crema::layers {
namespace {

const std::string kFolder = CREMA_SOURCE_DIR "/tests/goldens/layers/";

struct Outcome {
  double worst = 0;
  size_t arrays = 0;
};

using golden::Arrays;

class LayerRun {
 public:
  LayerRun(const golden::Case& c, const std::string& folder) : case_(c), kernels_(kernels::bestIsa(), 1) {
    caffe::LayerParameter p = model::parseText<caffe::LayerParameter>(golden::placed(c.layer, folder), c.name);
    p.set_name("layer");
    LayerContext context;
    context.kernels = &kernels_, context.run = &run_, context.data = &data_;
    data_.folder = kFolder;
    context.phase = c.test ? caffe::TEST : caffe::TRAIN;
    layer_ = builtinLayers().make(p, context);
    for (size_t i = 0; i < c.shapes.size(); ++i) {
      bottoms_.push_back(std::make_unique<Blob>(Shape(c.shapes[i]), DType::kFloat32));
      fill(*bottoms_[i], c.fillings[i], static_cast<int>(i), false);
      down_.push_back(golden::hasGradient(c.fillings[i]));
    }
    for (int i = 0; i < p.propagate_down_size(); ++i) down_[static_cast<size_t>(i)] = p.propagate_down(i);
    for (int i = 0; i < golden::topsOf(p.type(), p.top_size()); ++i)
      tops_.push_back(std::make_unique<Blob>(DType::kFloat32));
    layer_->setUp(pointers(bottoms_), pointers(tops_));
    for (size_t i = 0; i < layer_->params().size(); ++i) {
      fill(*layer_->params()[i], c.params, 100 + static_cast<int>(i), false);
      layer_->params()[i]->fillDiff(0);
    }
  }

  Outcome compare(const Arrays& wanted) {
    golden_ = &wanted;
    for (; run_.step < case_.passes; ++run_.step) {
      layer_->forward(pointers(bottoms_), pointers(tops_));
      for (auto& t : tops_) check(*t, false, "top");
    }
    if (case_.backward) {
      for (size_t t = 0; t < tops_.size(); ++t)
        if (layer_->lossWeight(static_cast<int>(t)) == 0) fill(*tops_[t], "s", 200 + static_cast<int>(t), true);
      layer_->backward(pointers(tops_), down_, pointers(bottoms_));
      for (size_t i = 0; i < bottoms_.size(); ++i)
        if (down_[i]) check(*bottoms_[i], true, "gradient of a bottom");
      for (size_t i = 0; i < layer_->params().size(); ++i)
        if (kept(i))
          ++outcome_.arrays;  // Caffe has no gradient of statistics
        else
          check(*layer_->params()[i], true, "gradient of a parameter");
    }
    for (size_t i = 0; i < layer_->params().size(); ++i) {
      if (kept(i)) moveStatistics(*layer_->params()[i], *kept(i));
      check(*layer_->params()[i], false, "parameter");
    }
    EXPECT_EQ(outcome_.arrays, wanted.size());
    return outcome_;
  }

 private:
  std::optional<double> kept(size_t param) const { return layer_->keptPerPass(static_cast<int>(param)); }
  // Updates running statistics as the solver does after a pass of one rank, and Caffe's layer during it.
  static void moveStatistics(Blob& p, double kept) {
    for (int k = 0; k < p.count(); ++k)
      p.mutableData<float>()[k] = static_cast<float>(kept * p.dataAt(k) + p.diffAt(k));
  }
  static void fill(Blob& blob, const std::string& filling, int which, bool diff) {
    float* to = diff ? blob.mutableDiff<float>() : blob.mutableData<float>();
    for (int k = 0; k < blob.count(); ++k) to[k] = golden::value(filling, which, k);
  }
  static Blobs pointers(const std::vector<std::unique_ptr<Blob>>& v) {
    Blobs p;
    for (const auto& b : v) p.push_back(b.get());
    return p;
  }
  void check(const Blob& got, bool diff, const char* what) {
    ASSERT_LT(outcome_.arrays, golden_->size()) << what;
    const std::vector<float>& want = (*golden_)[outcome_.arrays++];
    ASSERT_EQ(static_cast<size_t>(got.count()), want.size()) << what << " " << got.shape().brief();
    double largest = 1e-3;
    for (const float w : want) largest = std::max(largest, static_cast<double>(std::fabs(w)));
    for (size_t k = 0; k < want.size(); ++k) {
      const int i = static_cast<int>(k);
      const double error = std::fabs((diff ? got.diffAt(i) : got.dataAt(i)) - want[k]) / largest;
      outcome_.worst = std::max(outcome_.worst, error);
      EXPECT_LE(error, 1e-5) << what << ", element " << k << ": " << (diff ? got.diffAt(i) : got.dataAt(i))
                             << ", Caffe has " << want[k];
    }
  }

  const golden::Case& case_;
  kernels::Context kernels_;
  RunState run_;
  DataOptions data_;
  std::unique_ptr<Layer> layer_;
  std::vector<std::unique_ptr<Blob>> bottoms_, tops_;
  std::vector<bool> down_;
  const Arrays* golden_ = nullptr;
  Outcome outcome_;
};

// Every type of Caffe's must be compared in more than one configuration.
std::map<std::string, int> compareAll(const std::string& folder) {
  const test::TemporaryFolder own;
  writeFileAtomically(own.file("out.txt"), own.file("out.h5") + "\n");
  std::map<std::string, int> configurations;
  golden::Reader golden(readFile(folder + "caffe.golden"));
  for (const golden::Case& c : golden::cases(folder + "cases.txt")) {
    SCOPED_TRACE(c.name);
    ++configurations[model::parseText<caffe::LayerParameter>(c.layer, c.name).type()];
    const Arrays caffes = golden.next();
    try {
      const Outcome o = LayerRun(c, own.path()).compare(caffes);
      std::printf("differential %-28s %2zu arrays, largest error %.1e of the array's largest value\n", c.name.c_str(),
                  o.arrays, o.worst);
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
  EXPECT_TRUE(golden.ended());
  return configurations;
}

TEST(Differential, LayersComputeWhatCaffeComputes) {
  auto configurations = compareAll(kFolder);
  configurations.merge(compareAll(kFolder + "../image_layers/"));
  // Not in BVLC Caffe, or not possible without Python.
  for (const char* type : {"CoSData", "Python"}) configurations[type] = 2;
  for (const auto& [type, entry] : builtinLayers().entries())
    EXPECT_GE(configurations[type], 2) << "configurations of " << type << " that are compared with Caffe";
}

}  // namespace
}  // namespace crema::layers
