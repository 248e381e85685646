#include "net/placement.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace crema::net {
namespace {

TEST(Placement, WhatIsNeededAtTheSameTimeDoesNotOverlap) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 draw(seed);
    const auto of = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
    std::deque<Blob> blobs;
    std::vector<Need> needs;
    int64_t most = 0, sum = 0;
    for (int i = 0; i < 1 + of(30); ++i) {
      const int from = of(40);
      needs.push_back({&blobs.emplace_back(Shape{1 + of(500)}, DType::kFloat32), from, from + of(12)});
    }
    for (int moment = 0; moment < 60; ++moment) {
      int64_t now = 0;
      for (const Need& n : needs) now += n.from <= moment && moment <= n.to ? n.size() : 0;
      most = std::max(most, now);
    }
    const Placement p = placed(needs);
    ASSERT_EQ(p.places.size(), needs.size());
    for (size_t i = 0; i < p.needs.size(); ++i) {
      const int64_t end = p.places[i] + p.needs[i].size();
      sum += p.needs[i].size();
      EXPECT_GE(p.places[i], 0);
      EXPECT_LE(end, p.whole);
      EXPECT_EQ(p.places[i] % 16, 0);
      for (size_t j = 0; j < i; ++j) {
        const bool apart = p.places[j] >= end || p.places[i] >= p.places[j] + p.needs[j].size();
        EXPECT_TRUE(apart || !p.needs[i].meets(p.needs[j])) << "seed " << seed << ": " << i << ", " << j;
      }
    }
    EXPECT_GE(p.whole, most);
    EXPECT_LE(p.whole, sum);
  }
}

}  // namespace
}  // namespace crema::net
