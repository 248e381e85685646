// One conformance suite for all layer types: forward against a naive function in double, gradients against central
// differences, float against double, accumulation of parameter gradients, guard values, bad descriptions. The registry
// is walked: a type without a case or without its one-line summary fails.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/thread_pool.h"
#include "layers/registry.h"
#include "model/proto_io.h"

namespace crema {
namespace {

struct Case {
  std::string description;  // LayerParameter
  std::vector<Shape> bottoms;
  bool labels = false;  // bottom 1 holds class numbers
  int classes = 0;
  bool smooth = true;  // gradients can be checked
  std::function<std::vector<double>(const std::vector<std::vector<double>>& bottoms)>
      naive;                                                              // top 0, where a formula is short
  std::function<double(size_t bottom, int k, double u)> input = nullptr;  // instead of [-1, 1); u is in [0, 1)
  size_t gradientTops = 9;                                                // tops behind these take no gradient
};

// Embed's indices, -1 among them; LSTM's cont: 0 in the first row, or the state of one pass would go to the next.
void addSequences(const std::function<Case&(const std::string&, std::vector<Shape>)>& add) {
  const std::string filler = "weight_filler { type: 'gaussian' std: 0.8 } ";
  const std::string bias = "bias_filler { type: 'uniform' min: -1 max: 1 } ";
  const auto words = [](size_t, int, double u) { return std::floor(u * 6) - 1; };
  add("type: 'Embed' embed_param { input_dim: 5 num_output: 3 " + filler + bias + "}", {{4, 3}}).input = words;
  Case& same = add(
      "type: 'Embed' embed_param { input_dim: 5 num_output: 2 weight_filler { value: 0.5 } bias_filler { value: 2 } }",
      {{7}});
  same.input = words;
  same.naive = [](const auto& x) {
    std::vector<double> y;
    for (double v : x[0]) y.insert(y.end(), 2, v < 0 ? 2 : 2.5);
    return y;
  };
  const auto cont = [](size_t bottom, int k, double u) {
    return bottom != 1 ? 2 * u - 1 : static_cast<double>(k >= 2 && u > 0.3);
  };
  const std::string lstm = "type: 'LSTM' recurrent_param { num_output: 3 " + filler + bias;
  add(lstm + "}", {{4, 2, 5}, {4, 2}}).input = cont;
  add(lstm + "}", {{3, 2, 2, 2}, {3, 2}, {2, 4}}).input = cont;
  const auto parts = [](size_t bottom, int, double u) { return bottom == 1 ? u : 2 * u - 1; };
  for (const bool fixed : {false, true}) {  // states are inputs here, and cont may be anything
    std::vector<Shape> bottoms = {{3, 2, 4}, {3, 2}, {1, 2, 3}, {1, 2, 3}};
    if (fixed) bottoms[3] = {2, 3}, bottoms.insert(bottoms.begin() + 2, Shape{2, 5});
    Case& exposed = add(lstm + "expose_hidden: true } top: 'h' top: 'hT' top: 'cT'", bottoms);
    exposed.input = parts;
    exposed.gradientTops = 1;
  }
}

std::vector<Case> cases() {
  const auto sum = [](double a, double v) { return a + v; };
  std::vector<Case> all;
  const auto add = [&](const std::string& text, std::vector<Shape> bottoms) -> Case& {
    all.push_back({text, std::move(bottoms), false, 0, true, nullptr});
    return all.back();
  };
  addSequences(add);
  const std::string filler =
      "weight_filler { type: 'gaussian' std: 0.5 } bias_filler { type: 'uniform' min: -1 max: 1 }";
  add("type: 'Convolution' convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 2 " + filler + " }",
      {{2, 3, 7, 6}});
  add("type: 'Convolution' convolution_param { num_output: 6 kernel_h: 1 kernel_w: 2 group: 3 dilation: 2 bias_term: "
      "false " +
          filler + " }",
      {{1, 3, 3, 5}});
  add("type: 'Convolution' convolution_param { num_output: 2 kernel_size: 3 " + filler + " }", {{2, 2, 5}});
  add("type: 'InnerProduct' inner_product_param { num_output: 5 " + filler + " }", {{3, 2, 4}});
  add("type: 'InnerProduct' inner_product_param { num_output: 5 axis: 2 transpose: true " + filler + " }", {{3, 2, 4}});
  add("type: 'Pooling' pooling_param { pool: MAX kernel_size: 3 stride: 2 }", {{2, 3, 7, 8}});
  add("type: 'Pooling' pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }", {{2, 3, 7, 8}});
  add("type: 'Pooling' pooling_param { pool: AVE global_pooling: true }", {{2, 3, 4, 5}}).naive = [=](const auto& x) {
    std::vector<double> y;
    for (size_t p = 0; p < x[0].size(); p += 20)
      y.push_back(
          std::accumulate(x[0].begin() + static_cast<long>(p), x[0].begin() + static_cast<long>(p) + 20, 0.0, sum) /
          20);
    return y;
  };
  add("type: 'ReLU' relu_param { negative_slope: 0.25 }", {{4, 9}}).naive = [](const auto& x) {
    std::vector<double> y;
    for (double v : x[0]) y.push_back(v > 0 ? v : 0.25 * v);
    return y;
  };
  add("type: 'LRN' lrn_param { local_size: 3 alpha: 0.8 k: 2 }", {{2, 5, 3, 3}});
  add("type: 'LRN' lrn_param { local_size: 7 alpha: 0.8 beta: 0.6 }", {{1, 4, 2, 3}});
  add("type: 'LRN' lrn_param { local_size: 3 alpha: 0.8 norm_region: WITHIN_CHANNEL }", {{2, 2, 5, 4}});
  add("type: 'Softmax'", {{3, 4, 2}}).naive = [](const auto& x) {
    std::vector<double> y(24);
    for (int n = 0; n < 3; ++n)
      for (int i = 0; i < 2; ++i) {
        double total = 0;
        for (int c = 0; c < 4; ++c) total += std::exp(x[0][static_cast<size_t>((n * 4 + c) * 2 + i)]);
        for (int c = 0; c < 4; ++c)
          y[static_cast<size_t>((n * 4 + c) * 2 + i)] =
              std::exp(x[0][static_cast<size_t>((n * 4 + c) * 2 + i)]) / total;
      }
    return y;
  };
  Case& loss = add("type: 'SoftmaxWithLoss'", {{5, 4}, {5}});
  loss.labels = true, loss.classes = 4;
  loss.naive = [](const auto& x) {
    double total = 0;
    for (size_t n = 0; n < 5; ++n) {
      double z = 0;
      for (size_t c = 0; c < 4; ++c) z += std::exp(x[0][n * 4 + c]);
      total -= x[0][n * 4 + static_cast<size_t>(x[1][n])] - std::log(z);
    }
    return std::vector<double>{total / 5};
  };
  Case& ignoring =
      add("type: 'SoftmaxWithLoss' loss_param { ignore_label: 1 normalization: FULL }", {{3, 4, 2}, {3, 1, 2}});
  ignoring.labels = true, ignoring.classes = 4;
  Case& accuracy = add("type: 'Accuracy' accuracy_param { top_k: 2 }", {{6, 5}, {6}});
  accuracy.labels = true, accuracy.classes = 5, accuracy.smooth = false;
  accuracy.naive = [](const auto& x) {
    int hits = 0;
    for (size_t n = 0; n < 6; ++n) {
      int ahead = 0;
      const auto label = static_cast<size_t>(x[1][n]);
      for (size_t c = 0; c < 5; ++c) ahead += c != label && x[0][n * 5 + c] >= x[0][n * 5 + label];
      hits += ahead < 2;
    }
    return std::vector<double>{hits / 6.0};
  };
  add("type: 'Dropout' dropout_param { dropout_ratio: 0.3 }", {{4, 25}});
  add("type: 'Split' top: 'a' top: 'b' top: 'c'", {{2, 3}}).naive = [](const auto& x) { return x[0]; };
  add("type: 'Concat' concat_param { axis: 2 }", {{2, 3, 2}, {2, 3, 1}, {2, 3, 4}});
  add("type: 'Concat'", {{2, 3, 2}}).naive = [](const auto& x) { return x[0]; };
  add("type: 'Flatten' flatten_param { axis: 1 end_axis: 2 }", {{2, 3, 4, 2}}).naive = [](const auto& x) {
    return x[0];
  };
  add("type: 'Silence'", {{2, 3}, {4}});
  Case& input = add("type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } }", {});
  input.smooth = false;
  Case& dummy =
      add("type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 2 dim: 3 } data_filler { type: 'constant' value: "
          "4 } }",
          {});
  dummy.smooth = false;
  dummy.naive = [](const auto&) { return std::vector<double>(6, 4.0); };
  return all;
}

// Data layers read records; data/data_test.cc and tests/end_to_end check what they deliver.
const std::set<std::string> kElsewhere = {"Data", "MemoryData", "CoSData"};

// A layer with its blobs in one dtype.
class Bench {
 public:
  Bench(const Case& c, DType dtype, caffe::Phase phase = caffe::TRAIN, int threads = 1)
      : kernels_(kernels::bestIsa(), threads), gradientTops_(c.gradientTops) {
    caffe::LayerParameter p = parseText<caffe::LayerParameter>(c.description, c.description);
    if (p.name().empty()) p.set_name("layer");
    LayerContext context;
    context.kernels = &kernels_, context.dtype = dtype, context.phase = phase, context.run = &run_,
    context.data = &data_;
    layer_ = builtinLayers().make(p, context);
    for (size_t i = 0; i < c.bottoms.size(); ++i) {
      bottoms_.push_back(std::make_unique<Blob>(c.bottoms[i], dtype));
      RandomKey key;
      key.step = i;
      const RandomStream r(key);
      for (int k = 0; k < bottoms_[i]->count(); ++k)
        set(*bottoms_[i], k,
            c.input ? c.input(i, k, r.uniform(static_cast<uint64_t>(k)))
            : c.labels && i == 1
                ? static_cast<double>(r.below(static_cast<uint64_t>(k), static_cast<uint64_t>(c.classes)))
                : 2 * r.uniform(static_cast<uint64_t>(k)) - 1);
    }
    const int tops = std::max(p.top_size(), p.type() == "Silence" ? 0 : 1);
    for (int i = 0; i < tops; ++i) tops_.push_back(std::make_unique<Blob>(dtype));
    layer_->setUp(pointers(bottoms_), pointers(tops_));
  }

  static void set(Blob& b, int i, double v) {
    withType(b.dtype(), [&]<class T>() { b.mutableData<T>()[i] = static_cast<T>(v); });
  }
  static void setDiff(Blob& b, int i, double v) {
    withType(b.dtype(), [&]<class T>() { b.mutableDiff<T>()[i] = static_cast<T>(v); });
  }

  double forward() { return layer_->forward(pointers(bottoms_), pointers(tops_)); }
  void backward() { layer_->backward(pointers(tops_), downs(), pointers(bottoms_)); }
  std::vector<bool> downs() const {
    std::vector<bool> d;
    for (size_t i = 0; i < bottoms_.size(); ++i) d.push_back(layer_->allowsForceBackward(static_cast<int>(i)));
    return d;
  }
  // sum over all tops of weight * value, the weights fixed odd numbers; loss tops keep their loss weight.
  double objective() {
    forward();
    double total = 0;
    each([&](Blob& b, int i, double w) { total += w * b.dataAt(i); });
    return total;
  }
  void seedTopDiffs() {
    each([&](Blob& b, int i, double w) { setDiff(b, i, w); });
  }

  std::vector<double> topData(int i) const { return values(*tops_[static_cast<size_t>(i)]); }
  static std::vector<double> values(const Blob& b) {
    std::vector<double> v;
    for (int i = 0; i < b.count(); ++i) v.push_back(b.dataAt(i));
    return v;
  }
  std::vector<std::unique_ptr<Blob>>& bottoms() { return bottoms_; }
  std::vector<std::unique_ptr<Blob>>& tops() { return tops_; }
  Layer& layer() { return *layer_; }
  RunState& run() { return run_; }

 private:
  static Blobs pointers(const std::vector<std::unique_ptr<Blob>>& v) {
    Blobs p;
    for (const auto& b : v) p.push_back(b.get());
    return p;
  }
  void each(const std::function<void(Blob&, int, double)>& use) {
    for (size_t t = 0; t < std::min(tops_.size(), gradientTops_); ++t)
      for (int i = 0; i < tops_[t]->count(); ++i)
        use(*tops_[t], i,
            layer_->isLoss() ? layer_->lossWeight(static_cast<int>(t))
                             : 0.5 + 0.25 * ((i * 7 + static_cast<int>(t)) % 5));
  }

  kernels::Context kernels_;
  size_t gradientTops_;
  RunState run_;
  DataOptions data_;
  std::unique_ptr<Layer> layer_;
  std::vector<std::unique_ptr<Blob>> bottoms_, tops_;
};

TEST(Layers, EveryTypeHasACaseAndASummary) {
  std::set<std::string> covered = kElsewhere;
  for (const Case& c : cases()) covered.insert(parseText<caffe::LayerParameter>(c.description, "case").type());
  for (const auto& [type, entry] : builtinLayers().entries()) {
    EXPECT_TRUE(covered.count(type)) << type << " has no case in the conformance suite";
    EXPECT_FALSE(entry.summary.empty()) << type;
  }
}

TEST(Layers, ForwardIsTheFormula) {
  for (const Case& c : cases()) {
    if (!c.naive) continue;
    SCOPED_TRACE(c.description);
    Bench b(c, DType::kFloat64);
    b.forward();
    std::vector<std::vector<double>> in;
    for (auto& bottom : b.bottoms()) in.push_back(Bench::values(*bottom));
    const auto want = c.naive(in), got = b.topData(0);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12);
  }
}

// Calls body for every case that has gradients, in double, after one forward and backward pass.
void eachSmoothCase(const std::function<void(Bench&)>& body) {
  for (const Case& c : cases()) {
    if (!c.smooth) continue;
    SCOPED_TRACE(c.description);
    Bench b(c, DType::kFloat64);
    b.forward();
    b.seedTopDiffs();
    b.backward();
    body(b);
  }
}

TEST(Layers, GradientsMatchCentralDifferences) {
  constexpr double kStep = 1e-5;
  eachSmoothCase([&](Bench& b) {
    const auto check = [&](Blob& blob, const char* what) {
      for (int i = 0; i < blob.count(); ++i) {
        const double x = blob.dataAt(i), analytic = blob.diffAt(i);
        Bench::set(blob, i, x + kStep);
        const double above = b.objective();
        Bench::set(blob, i, x - kStep);
        const double below = b.objective();
        Bench::set(blob, i, x);
        const double numeric = (above - below) / (2 * kStep);
        ASSERT_NEAR(analytic, numeric, 1e-6 * std::max({1.0, std::fabs(analytic), std::fabs(numeric)}))
            << what << ", element " << i;
      }
    };
    const auto down = b.downs();
    for (size_t i = 0; i < b.bottoms().size(); ++i)
      if (down[i]) check(*b.bottoms()[i], "bottom");
    for (auto& p : b.layer().params()) check(*p, "parameter");
  });
}

TEST(Layers, ParameterGradientsAccumulateAndBottomGradientsDoNot) {
  eachSmoothCase([&](Bench& b) {
    std::vector<double> params, bottoms;
    for (auto& p : b.layer().params())
      for (int i = 0; i < p->count(); ++i) params.push_back(p->diffAt(i));
    for (auto& x : b.bottoms())
      for (int i = 0; i < x->count(); ++i) bottoms.push_back(x->diffAt(i));
    b.seedTopDiffs();
    b.backward();
    size_t k = 0;
    for (auto& p : b.layer().params())
      for (int i = 0; i < p->count(); ++i, ++k)
        EXPECT_NEAR(p->diffAt(i), 2 * params[k], 1e-9 * std::max(1.0, std::fabs(params[k])));
    k = 0;
    for (auto& x : b.bottoms())
      for (int i = 0; i < x->count(); ++i, ++k) EXPECT_EQ(x->diffAt(i), bottoms[k]);
  });
}

TEST(Layers, FloatFollowsDouble) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.description);
    Bench d(c, DType::kFloat64), f(c, DType::kFloat32, caffe::TRAIN, 2);
    for (size_t i = 0; i < c.bottoms.size(); ++i)
      for (int k = 0; k < d.bottoms()[i]->count(); ++k) Bench::set(*d.bottoms()[i], k, f.bottoms()[i]->dataAt(k));
    for (size_t i = 0; i < d.layer().params().size(); ++i)
      for (int k = 0; k < d.layer().params()[i]->count(); ++k)
        Bench::set(*d.layer().params()[i], k, f.layer().params()[i]->dataAt(k));
    d.forward(), f.forward();
    for (size_t t = 0; t < d.tops().size(); ++t) {
      ASSERT_TRUE(d.tops()[t]->shape() == f.tops()[t]->shape());
      for (int i = 0; i < d.tops()[t]->count(); ++i) EXPECT_NEAR(d.tops()[t]->dataAt(i), f.tops()[t]->dataAt(i), 2e-5);
    }
    if (!c.smooth) continue;
    d.seedTopDiffs(), f.seedTopDiffs();
    d.backward(), f.backward();
    for (size_t i = 0; i < c.bottoms.size(); ++i)
      for (int k = 0; k < d.bottoms()[i]->count(); ++k)
        EXPECT_NEAR(d.bottoms()[i]->diffAt(k), f.bottoms()[i]->diffAt(k), 5e-5);
    for (size_t i = 0; i < d.layer().params().size(); ++i)
      for (int k = 0; k < d.layer().params()[i]->count(); ++k)
        EXPECT_NEAR(d.layer().params()[i]->diffAt(k), f.layer().params()[i]->diffAt(k), 2e-4);
  }
}

TEST(Layers, DropoutDependsOnStepRankAndNothingElse) {
  const Case c{"type: 'Dropout' dropout_param { dropout_ratio: 0.25 }", {{100, 100}}, false, 0, true, nullptr};
  Bench a(c, DType::kFloat32), b(c, DType::kFloat32, caffe::TRAIN, 3), test(c, DType::kFloat32, caffe::TEST);
  a.forward(), b.forward();
  EXPECT_EQ(a.topData(0), b.topData(0));
  int zeros = 0;
  for (double v : a.topData(0)) zeros += v == 0;
  EXPECT_NEAR(zeros, 2500, 5 * std::sqrt(10000 * 0.25 * 0.75));
  const auto before = a.topData(0);
  a.run().step = 1;
  a.forward();
  EXPECT_NE(a.topData(0), before);
  a.run().step = 0, a.run().rank = 1;
  a.forward();
  EXPECT_NE(a.topData(0), before);
  test.forward();
  EXPECT_EQ(test.topData(0), Bench::values(*test.bottoms()[0]));
}

TEST(Layers, AccuracyCountsTiesAgainst) {
  const Case c{"type: 'Accuracy'", {{2, 3}, {2}}, true, 3, false, nullptr};
  Bench b(c, DType::kFloat32);
  for (int i = 0; i < 6; ++i) Bench::set(*b.bottoms()[0], i, 1.0);  // all equal
  b.forward();
  EXPECT_EQ(b.topData(0)[0], 0);
}

std::string refusal(const std::string& description, std::vector<Shape> bottoms) {
  try {
    Bench b({description, std::move(bottoms), false, 0, true, nullptr}, DType::kFloat32);
    b.forward();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Layers, BadDescriptionsGetASentence) {
  const struct {
    const char* description;
    std::vector<Shape> bottoms;
    const char* expected;
  } bad[] = {{"type: 'Convolution' convolution_param { num_output: 4 kernel_size: 11 }",
              {{1, 3, 7, 7}},
              "exceeds the padded input 7x7 (bottom is 1x3x7x7"},
             {"type: 'Convolution' convolution_param { num_output: 4 }", {{1, 3, 7, 7}}, "kernel must be given"},
             {"type: 'Convolution' convolution_param { kernel_size: 3 }", {{1, 3, 7, 7}}, "num_output must be given"},
             {"type: 'Convolution' convolution_param { num_output: 4 kernel_size: 3 group: 2 }",
              {{1, 3, 7, 7}},
              "group 2 must divide"},
             {"type: 'Convolution' convolution_param { num_output: 4 kernel_size: 3 kernel_h: 2 kernel_w: 2 }",
              {{1, 3, 7, 7}},
              "not both"},
             {"type: 'Pooling' pooling_param { kernel_size: 2 pad: 2 }", {{1, 3, 7, 7}}, "pad 2x2 must be smaller"},
             {"type: 'Pooling' pooling_param { kernel_size: 2 }", {{3, 7}}, "needs 4 axes"},
             {"type: 'LRN' lrn_param { local_size: 4 }", {{1, 3, 2, 2}}, "local_size must be odd"},
             {"type: 'Dropout' dropout_param { dropout_ratio: 1 }", {{3}}, "dropout_ratio must be in [0, 1)"},
             {"type: 'InnerProduct' inner_product_param { }", {{3, 2}}, "num_output must be given"},
             {"type: 'InnerProduct' inner_product_param { num_output: 2 axis: 5 }", {{3, 2}}, "axis 5 is out of range"},
             {"type: 'Concat'", {{2, 3}, {3, 3}}, "all axes but axis 1 must agree"},
             {"type: 'SoftmaxWithLoss'", {{5, 4}, {4}}, "4 labels for 5 predictions"},
             {"type: 'ReLU'", {{1}, {1}}, "takes 1 bottom blob(s), here are 2"},
             {"type: 'InnerProduct' inner_product_param { num_output: 2 weight_filler { type: 'magic' } }",
              {{3, 2}},
              "unknown filler type 'magic'"},
             {"type: 'Embed' embed_param { num_output: 2 }", {{3}}, "needs input_dim and num_output"},
             {"type: 'LSTM' recurrent_param { }", {{2, 3, 4}, {2, 3}}, "num_output must be given"},
             {"type: 'LSTM' recurrent_param { num_output: 2 }", {{2, 3}, {2, 3}}, "must be steps x streams x inputs"},
             {"type: 'LSTM' recurrent_param { num_output: 2 }", {{2, 3, 4}, {3, 2}}, "(cont) must be 2x3"},
             {"type: 'LSTM' recurrent_param { num_output: 2 }", {{2, 3, 4}, {2, 3}, {4, 1}}, "must be 3 streams"},
             {"type: 'LSTM' recurrent_param { num_output: 2 expose_hidden: true }",
              {{2, 3, 4}, {2, 3}},
              "takes 4 to 5 bottom blob(s), here are 2"},
             {"type: 'LSTM' recurrent_param { num_output: 2 expose_hidden: true } top: 'h' top: 'a' top: 'b'",
              {{2, 3, 4}, {2, 3}, {1, 3, 2}, {1, 2, 3}},
              "must be 1x3x2, not 1x2x3"},
             {"type: 'Ghost'", {{1}}, "Unknown layer type: Ghost (known types: Accuracy,"}};
  for (const auto& b : bad) {
    const std::string message = refusal(b.description, b.bottoms);
    EXPECT_NE(message.find(b.expected), std::string::npos) << b.description << "\n  said: " << message;
  }
}

TEST(Layers, LabelsOutsideTheClassesAreRefused) {
  for (const char* type : {"type: 'SoftmaxWithLoss'", "type: 'Accuracy'"}) {
    Bench b({type, {{2, 3}, {2}}, true, 3, false, nullptr}, DType::kFloat32);
    Bench::set(*b.bottoms()[1], 1, 7);
    try {
      b.forward();
      ADD_FAILURE() << type;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("label 7 of item 1 is not a class"), std::string::npos) << e.what();
    }
  }
}

TEST(Layers, IndicesOutsideTheTableAreRefused) {
  Bench b({"type: 'Embed' embed_param { num_output: 2 input_dim: 3 }", {{2, 2}}, false, 0, true, nullptr},
          DType::kFloat32);
  for (const double index : {3.0, -2.0, std::nan("")}) {
    Bench::set(*b.bottoms()[0], 2, index);
    try {
      b.forward();
      ADD_FAILURE() << index;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("of item 2 has no row: the table has 3, 0 to 2"), std::string::npos);
    }
  }
}

TEST(Fillers, MomentsOfTheFormulas) {
  const auto filled = [](const std::string& text, const Shape& shape) {
    Blob b(shape, DType::kFloat64);
    fill(parseText<caffe::FillerParameter>(text, "filler"), 1, "p", b);
    return Bench::values(b);
  };
  const auto moments = [](const std::vector<double>& v) {
    double mean = 0, square = 0;
    for (double x : v) mean += x, square += x * x;
    return std::pair(mean / static_cast<double>(v.size()), square / static_cast<double>(v.size()));
  };
  const Shape s{100, 20, 5, 5};  // fan in 500, fan out 2500
  EXPECT_NEAR(moments(filled("type: 'xavier'", s)).second, 1.0 / 500, 5e-5);
  EXPECT_NEAR(moments(filled("type: 'msra' variance_norm: FAN_OUT", s)).second, 2.0 / 2500, 3e-5);
  EXPECT_NEAR(moments(filled("type: 'uniform' min: 2 max: 4", s)).first, 3, 0.02);
  EXPECT_NEAR(moments(filled("type: 'gaussian' mean: 1 std: 2", s)).second, 5, 0.15);
  EXPECT_EQ(moments(filled("value: 7", s)).first, 7);
  const auto sparse = filled("type: 'gaussian' sparse: 10", s);
  EXPECT_NEAR(static_cast<double>(std::count(sparse.begin(), sparse.end(), 0.0)) / static_cast<double>(sparse.size()),
              0.9, 0.01);
  const auto ball = filled("type: 'positive_unitball'", Shape{4, 6});
  for (int n = 0; n < 4; ++n)
    EXPECT_NEAR(std::accumulate(ball.begin() + 6 * n, ball.begin() + 6 * n + 6, 0.0), 1, 1e-12);
  EXPECT_EQ(filled("type: 'bilinear'", Shape{1, 1, 4, 4})[5], 0.75 * 0.75);
}

}  // namespace
}  // namespace crema
