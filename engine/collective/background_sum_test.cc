// Sums in parts, beside the caller: the tree's bits, errors, and an end that does not wait for others.
#include "collective/background_sum.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <future>

#include "support/hand_clock.h"
#include "support/mesh_world.h"
#include "support/message_of.h"

namespace crema::collective {
namespace {

using crema::test::gradientOf;
using crema::test::MeshWorld;
using crema::test::treeSum;

constexpr int kWorkers = 3;

// What each of three workers of a rank has behind `work`.
std::vector<std::vector<float>> ofEach(const std::function<std::vector<float>(int w, BackgroundSum& sum)>& work) {
  MeshWorld world(kWorkers);
  std::vector<std::future<std::vector<float>>> all;
  for (int w = 0; w < kWorkers; ++w)
    all.push_back(std::async(std::launch::async, [&, w] {
      Mesh mesh(world.options(w, kWorkers));
      BackgroundSum sum(mesh);
      return work(w, sum);
    }));
  std::vector<std::vector<float>> got;
  for (auto& one : all) got.push_back(one.get());
  return got;
}

// Four parts from the end to the beginning, in place.
TEST(BackgroundSum, PartsHaveTheBitsOfTheWhole) {
  constexpr int64_t kCount = 10007;
  const std::vector<float> want = treeSum({0, kWorkers}, kCount);
  const auto work = [](int w, BackgroundSum& sum) {
    std::vector<float> values(kCount);
    for (int step = 0; step < 3; ++step) {
      values = gradientOf(w, kCount);
      int part = 0;
      for (int64_t to = kCount; const int64_t from : {9000, 8990, 17, 0}) {
        sum.add({{values.data() + from}, values.data() + from, to - from, Tag::gradient(step, part++)});
        to = from;
      }
      sum.finish();
    }
    return values;
  };
  for (const auto& values : ofEach(work)) EXPECT_EQ(std::memcmp(values.data(), want.data(), kCount * sizeof(float)), 0);
}

TEST(BackgroundSum, FinishThrowsWhatTheExchangeDid) {
  MeshWorld world(2);
  auto partner = std::async(std::launch::async, [&] { return std::make_unique<Mesh>(world.options(1, 2)); });
  Mesh mesh(world.options(0, 2));
  partner.get().reset();  // closes its sockets
  BackgroundSum sum(mesh);
  std::vector<float> v(1000);
  for (int part = 0; part < 3; ++part) sum.add({{v.data()}, v.data(), 1000, Tag::gradient(0, part)});
  EXPECT_NE(crema::test::messageOf([&] { sum.finish(); }).find("worker 1"), std::string::npos);
}

// Numbers of each worker, which all get, between sums.
TEST(BackgroundSum, WhatIsSharedIsEveryonesBehindIt) {
  const auto work = [](int w, BackgroundSum& sum) {
    std::vector<float> values(1000, 1.f), shared(kWorkers * 50, -1.f);
    std::fill_n(shared.begin() + w * 50, 50, static_cast<float>(w));
    std::vector<Bytes> of;
    for (int other = 0; other < kWorkers; ++other)
      of.push_back({reinterpret_cast<char*>(shared.data() + other * 50), 50 * sizeof(float)});
    sum.add({{values.data()}, values.data(), 500, Tag::gradient(0, 0)});
    sum.share({of, Tag::gradient(0, 1)});
    sum.add({{values.data() + 500}, values.data() + 500, 500, Tag::gradient(0, 2)});
    sum.finish();
    EXPECT_EQ(values, std::vector<float>(1000, 3.f));
    return shared;
  };
  for (const auto& shared : ofEach(work))
    for (size_t i = 0; i < shared.size(); ++i) EXPECT_EQ(shared[i], static_cast<float>(i / 50)) << i;
}

// A pass that throws while its first part waits for others must not wait for them.
TEST(BackgroundSum, ItsEndAbandonsWhatWaits) {
  MeshWorld world(2);
  auto partner = std::async(std::launch::async, [&] { return std::make_unique<Mesh>(world.options(1, 2)); });
  auto o = world.options(0, 2);
  o.stepTimeout = 1000;
  Mesh mesh(o);
  const auto silent = partner.get();
  std::vector<float> v(1000);
  const double before = monotonicSeconds();
  {
    BackgroundSum sum(mesh);
    sum.add({{v.data()}, v.data(), 1000, Tag::gradient(0)});
  }
  EXPECT_LT(monotonicSeconds() - before, crema::test::kPatience);
}

}  // namespace
}  // namespace crema::collective
