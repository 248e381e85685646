#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/error.h"

namespace crema {
namespace {

TEST(ThreadPool, RunsEveryTaskOnceAndRethrows) {
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (int tasks : {0, 1, 2, 5, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(tasks));
      pool.run(tasks, [&](int t, int lane) {
        ASSERT_LT(lane, threads);
        ++hits[static_cast<size_t>(t)];
      });
      for (auto& h : hits) EXPECT_EQ(h.load(), 1);
    }
    EXPECT_THROW(pool.run(8,
                          [](int t, int) {
                            if (t == 3) invalid("task {}", t);
                          }),
                 Error);
    std::atomic<int> after{0};
    pool.run(8, [&](int, int) { ++after; });
    EXPECT_EQ(after, 8);
  }
}

TEST(ThreadPool, ManyShortRunsFromSleepAndSpin) {
  ThreadPool pool(3);
  std::atomic<int> total{0};
  for (int i = 0; i < 2000; ++i) {
    pool.run(3, [&](int, int) { ++total; });
    if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // lanes fall asleep
  }
  EXPECT_EQ(total, 6000);
}

// None can end before all have begun, so that no lane takes another one's.
TEST(ThreadPool, ALaneHasTheSamePartOfEveryRun) {
  constexpr int kLanes = 3;
  ThreadPool pool(kLanes);
  for (int run = 0; run < 100; ++run) {
    std::atomic<int> begun{0};
    std::array<int, kLanes> lanes{};
    pool.run(kLanes, [&](int t, int lane) {
      lanes[static_cast<size_t>(t)] = lane;
      ++begun;
      while (begun < kLanes) std::this_thread::yield();
    });
    ASSERT_EQ(lanes, (std::array<int, kLanes>{0, 1, 2}));
  }
}

TEST(ThreadPool, MoreTasksThanARangeCounts) {
  ThreadPool pool(2);
  for (const size_t tasks : {1'048'575u, 1'048'576u, 2'097'150u, 2'097'151u, 2'097'152u, 3'145'727u}) {
    std::vector<uint8_t> hits(tasks);
    pool.run(static_cast<int>(tasks), [&](int t, int) { ++hits[static_cast<size_t>(t)]; });
    EXPECT_EQ(std::count(hits.begin(), hits.end(), 1), static_cast<int64_t>(tasks));
  }
}

TEST(ThreadPool, ALoopWithinALoopIsRefused) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.run(4, [&](int, int) { pool.run(4, [](int, int) {}); }), Error);
  int ran = 0;
  pool.run(1, [&](int, int) { ++ran; });
  pool.run(4, [&](int t, int) {
    if (t == 0) ++ran;
  });
  EXPECT_EQ(ran, 2);
}

// The lane that fails is far from the end of its part.
TEST(ThreadPool, AFailureEndsTheOthersParts) {
  ThreadPool pool(2);
  std::atomic<int> ran{0};
  EXPECT_THROW(pool.run(1000,
                        [&](int t, int) {
                          if (t == 0) invalid("the first");
                          ++ran;
                          std::this_thread::sleep_for(std::chrono::milliseconds(1));
                        }),
               Error);
  EXPECT_LT(ran, 999);
}

}  // namespace
}  // namespace crema
