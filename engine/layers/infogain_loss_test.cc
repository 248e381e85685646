#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"
#include "support/message_of.h"
#include "support/shared_data.h"

namespace crema::conformance {
namespace {

// Scores [outer][3][inner], H 3 x 3; positions with label `ignored` do not count.
std::vector<Values> infogain(const std::vector<Values>& x, const Values& h, size_t outer, size_t inner, int ignored,
                             double divisor) {
  Values p(x[0].size());
  double loss = 0, valid = 0;
  for (size_t o = 0; o < outer; ++o)
    for (size_t i = 0; i < inner; ++i) {
      double z = 0;
      for (size_t c = 0; c < 3; ++c) z += std::exp(x[0][(o * 3 + c) * inner + i]);
      for (size_t c = 0; c < 3; ++c) p[(o * 3 + c) * inner + i] = std::exp(x[0][(o * 3 + c) * inner + i]) / z;
      const auto label = static_cast<size_t>(x[1][o * inner + i]);
      if (static_cast<int>(label) == ignored) continue;
      ++valid;
      for (size_t c = 0; c < 3; ++c) loss -= h[label * 3 + c] * std::log(p[(o * 3 + c) * inner + i]);
    }
  return {{loss / (divisor ? divisor : valid)}, p};
}

LAYER_CASES(InfogainLoss) {
  const struct {
    const char* options;
    int ignored;
    double divisor;  // 0: those that count
  } cases[] = {{"", -1, 0},
               {"loss_param { ignore_label: 2 }", 2, 0},
               {"loss_param { ignore_label: 1 normalization: FULL }", 1, 8},
               {"loss_param { ignore_label: 1 normalization: VALID }", 1, 0},
               {"loss_param { normalization: BATCH_SIZE }", -1, 4},
               {"loss_param { normalization: NONE }", -1, 1}};
  for (const auto& c : cases) {
    Case& one = s.add(std::string("type: 'InfogainLoss' top: 'loss' top: 'p' ") + c.options,
                      {{4, 3, 2}, {4, 1, 2}, {1, 1, 3, 3}});
    one.classes = 3, one.otherBatch = false;
    one.formula = [c](const auto& x, const auto&) { return infogain(x, x[2], 4, 2, c.ignored, c.divisor); };
  }
  Case& last = s.add("type: 'InfogainLoss' infogain_loss_param { axis: -1 }", {{2, 2, 3}, {2, 2}, {3, 3}});
  last.classes = 3, last.otherBatch = false;
  last.formula = [](const auto& x, const auto&) { return std::vector<Values>{infogain(x, x[2], 4, 1, -1, 4)[0]}; };
  s.bad("type: 'InfogainLoss'", {{2, 3}, {2}}, "Infogain matrix source must be specified");
  s.bad("type: 'InfogainLoss'", {{2, 3}, {2}, {3, 2}}, "the infogain matrix in bottom 2 is 3x2; 3 classes need 3x3");
  s.bad("type: 'InfogainLoss' loss_param { normalize: true }", {{2, 3}, {2}, {3, 3}}, "normalize is deprecated");
  s.bad("type: 'InfogainLoss' infogain_loss_param { source: 'no/such/file' }", {{2, 3}, {2}}, "no/such/file");
}

TEST(InfogainLoss, ReadsItsMatrixFromAFile) {
  const test::TemporaryFolder folder;
  caffe::BlobProto h;
  h.set_num(1), h.set_channels(1), h.set_height(3), h.set_width(3);
  const Values values = {1, 0.5, -0.25, 0, 2, 0, 0.125, 0, 0.75};
  for (const double v : values) h.add_data(static_cast<float>(v));
  model::writeBinary(folder.file("h.binaryproto"), h);
  Case c;
  c.description = "type: 'InfogainLoss' infogain_loss_param { source: '" + folder.file("h.binaryproto") + "' }";
  c.bottoms = {{5, 3}, {5}}, c.classes = 3;
  Bench b(c, DType::kFloat64);
  b.forward();
  const auto want = infogain({test::valuesOf(*b.bottoms()[0]), test::valuesOf(*b.bottoms()[1])}, values, 5, 1, -1, 5);
  EXPECT_NEAR(b.topData(0)[0], want[0][0], 1e-12);
  c.bottoms = {{5, 2}, {5}}, c.classes = 2;
  EXPECT_NE(test::messageOf([&] { Bench(c, DType::kFloat64); }).find("is 1x1x3x3; 2 classes need 2x2"),
            std::string::npos);
}

}  // namespace
}  // namespace crema::conformance
