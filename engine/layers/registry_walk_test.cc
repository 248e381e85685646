// Every type of the registry needs a summary, a head comment with a formula, a case with an expected result and a
// gradient check. These checks are tested too: they must find the faulty layers defined here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "layers/elementwise.h"
#include "support/registry_walk.h"

namespace crema::conformance {
namespace {

TEST(Layers, EveryTypeHasDocCaseAndGradientCheck) {
  for (const std::string& complaint : complaints(layers::builtinLayers(), suite(), CREMA_SOURCE_DIR))
    ADD_FAILURE() << complaint;
}

// y = sin(x) with a derivative of 7, no manual page and no expected result.
struct WrongSine {
  explicit WrongSine(const caffe::LayerParameter&) {}
  template <class T>
  T value(T x) const {
    return std::sin(x);
  }
  template <class T>
  T slope(T) const {
    return T(7);
  }
};

TEST(Layers, TheWalkFindsABadLayer) {
  layers::LayerRegistry registry;
  layers::addElementwise<WrongSine>(registry, "Sine", "");
  const auto complaintsAbout = [&](const Suite& s) { return complaints(registry, s, CREMA_SOURCE_DIR); };
  const auto has = [](const std::vector<std::string>& all, const std::string& what) {
    return std::find(all.begin(), all.end(), "Sine has no " + what) != all.end();
  };
  EXPECT_TRUE(has(complaintsAbout({}), "case"));
  Suite s;
  Case& c = s.add("type: 'Sine'", {{3, 7}});
  c.smooth = false;
  const auto all = complaintsAbout(s);
  EXPECT_TRUE(has(all, "summary"));
  EXPECT_TRUE(has(all, "case with a naive function or a formula"));
  EXPECT_TRUE(has(all, "case whose gradients differences can check"));
  if (std::filesystem::is_directory(CREMA_SOURCE_DIR "/engine/layers")) {
    EXPECT_TRUE(has(all, "head comment that names it"));
    EXPECT_TRUE(has(all, "formula in its head comment"));
  }
  c.smooth = true, c.naive = elementwise([](double x) { return std::sin(x); });
  EXPECT_FALSE(has(complaintsAbout(s), "case whose gradients differences can check"));
  Bench b(c, DType::kFloat64, caffe::TRAIN, 1, false, registry);
  b.forward(), b.seedTopDiffs(), b.backward();
  EXPECT_NE(gradientMistake(b).value_or("").find("the layer says 3.5"), std::string::npos) << "7 times 0.5";
}

// Writes one element beyond each end of its top, as a vector store without a mask would.
class Careless : public layers::SameShapeLayer {
 public:
  using layers::SameShapeLayer::SameShapeLayer;

 protected:
  void compute(const layers::Blobs& bottom, const layers::Blobs& top) override {
    top[0]->copyDataFrom(*bottom[0]);
    top[0]->mutableData<double>()[top[0]->count()] = 1;
  }
  void gradient(const layers::Blobs&, const std::vector<bool>&, const layers::Blobs& bottom) override {
    bottom[0]->mutableDiff<double>()[-1] = 1;
  }
};

TEST(Layers, GuardsSeeWhatIsWrittenBesideABlob) {
  layers::LayerRegistry registry;
  registry.add<Careless>("Careless", "writes beside its blobs");
  Case c;
  c.description = "type: 'Careless'", c.bottoms = {{3, 7}};
  Bench b(c, DType::kFloat64, caffe::TRAIN, 1, false, registry);
  const auto said = [](const std::function<void()>& pass) -> std::string {
    try {
      pass();
    } catch (const std::logic_error& e) {
      return e.what();
    }
    return "nothing";
  };
  EXPECT_NE(said([&] { b.forward(); }).find("behind the data of a blob 3x7"), std::string::npos);
  EXPECT_NE(said([&] { b.backward(); }).find("before the diff of a blob 3x7"), std::string::npos);
}

}  // namespace
}  // namespace crema::conformance
