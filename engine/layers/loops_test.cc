// Layers over loops.h on blobs of many pieces: the same bits from any number of threads.
#include <gtest/gtest.h>

#include <cmath>

#include "layers/loops.h"
#include "support/conformance.h"

namespace crema::conformance {
namespace {

TEST(Loops, ThreadsChangeNoBit) {
  const char* const all[] = {"type: 'Swish'",
                             "type: 'Power' power_param { power: 2 }",
                             "type: 'Threshold'",
                             "type: 'PReLU'",
                             "type: 'Bias'",
                             "type: 'Scale' scale_param { bias_term: true }",
                             "type: 'Scale' scale_param { axis: 3 num_axes: 1 }",
                             "type: 'BatchNorm'",
                             "type: 'MVN'",
                             "type: 'MVN' mvn_param { across_channels: true }",
                             "type: 'Reduction' reduction_param { operation: SUMSQ axis: 1 }",
                             "type: 'Eltwise' bottom: 'a' bottom: 'b'",
                             "type: 'Eltwise' eltwise_param { operation: MAX } bottom: 'a' bottom: 'b'",
                             "type: 'Eltwise' eltwise_param { operation: PROD } bottom: 'a' bottom: 'b'"};
  for (const char* description : all)
    for (const bool inPlace : {false, true}) {
      SCOPED_TRACE(description);
      Case c;
      c.description = description;
      c.bottoms.assign(c.description.find("'b'") == std::string::npos ? 1 : 2, Shape{9, 37, 11, 13});
      if (Bench(c, DType::kFloat32).layer().allowsInPlace() < inPlace) continue;
      Bench one(c, DType::kFloat32, caffe::TRAIN, 1, inPlace), three(c, DType::kFloat32, caffe::TRAIN, 3, inPlace);
      for (Bench* b : {&one, &three}) b->forward(), b->seedTopDiffs(), b->backward();
      const auto same = [](const Blob& a, const Blob& b) {
        ASSERT_EQ(a.count(), b.count());
        for (int i = 0; i < a.count(); ++i)
          ASSERT_TRUE(a.dataAt(i) == b.dataAt(i) && a.diffAt(i) == b.diffAt(i)) << "element " << i;
      };
      same(*one.tops()[0], *three.tops()[0]);
      for (size_t i = 0; i < one.bottoms().size(); ++i) same(*one.bottoms()[i], *three.bottoms()[i]);
      for (size_t i = 0; i < one.layer().params().size(); ++i)
        same(*one.layer().params()[i], *three.layer().params()[i]);
    }
}

TEST(Loops, ChannelSumsAreTheSums) {
  ThreadPool pool(2);
  for (const layers::Channels c : {layers::Channels{3, 35, 19}, layers::Channels{1, 1, 100}, layers::Channels{7, 5, 1},
                                   layers::Channels{4, 0, 3}, layers::Channels{2, 3, 0}}) {
    std::vector<double> got(static_cast<size_t>(c.channels), 77), want(got.size(), 0);
    layers::channelSums(pool, c, got.data(),
                        [](int64_t i, int d) { return std::sin(static_cast<double>(i)) * (d + 1); });
    for (int64_t i = 0; i < c.rows() * c.inner; ++i) {
      const int64_t d = i / c.inner % c.channels;
      want[static_cast<size_t>(d)] += std::sin(static_cast<double>(i)) * static_cast<double>(d + 1);
    }
    for (size_t d = 0; d < got.size(); ++d) EXPECT_NEAR(got[d], want[d], 1e-12 * (static_cast<double>(d) + 1));
    int64_t elements = 0;
    ThreadPool alone(1);
    layers::eachRow(alone, c, [&](int d, int64_t from, int64_t to) {
      EXPECT_EQ(from, to - c.inner);
      EXPECT_TRUE(c.inner == 0 || d == from / c.inner % c.channels);
      elements += to - from;
    });
    EXPECT_EQ(elements, c.rows() * c.inner);
  }
}

}  // namespace
}  // namespace crema::conformance
