#include "base/pausable_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "support/hand_clock.h"
#include "support/settle.h"

namespace crema {
namespace {

using Hold = std::unique_lock<PausableMutex>;  // not annotated: it is recursive, which the analysis does not know

using test::patience;

TEST(PausableMutex, IsRecursiveAndForOneThread) {
  PausableMutex mutex;
  Hold once(mutex), twice(mutex);
  bool got = true;
  std::thread([&] { got = mutex.try_lock(); }).join();
  EXPECT_FALSE(got);
  once.unlock();
  std::thread([&] { got = mutex.try_lock(); }).join();
  EXPECT_FALSE(got) << "the second lock of the same thread still holds";
  twice.unlock();
  std::thread([&] {
    got = mutex.try_lock();
    if (got) mutex.unlock();
  }).join();
  EXPECT_TRUE(got);
}

TEST(PausableMutex, BriefAccessesComeInWithAPauseAndOthersAtTheEnd) {
  PausableMutex mutex;
  mutex.lock();
  std::atomic<int> reads{0}, longer{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      ASSERT_TRUE(mutex.lockBriefly(patience()));
      ++reads;
      mutex.unlock();
    });
  threads.emplace_back([&] {
    const Hold hold(mutex);
    ++longer;
  });
  test::settle();
  EXPECT_EQ(reads + longer, 0);
  {
    const Hold inner(mutex);
    const PausableMutex::Pause nothing(mutex);
    EXPECT_EQ(reads, 0) << "the outer lock still holds";
  }
  {
    const PausableMutex::Pause pause(mutex);
    EXPECT_EQ(reads, 3);
  }
  test::settle();
  EXPECT_EQ(longer, 0);
  mutex.unlock();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(longer, 1);
}

TEST(PausableMutex, WhoAsksAgainAndAgainStopsNobody) {
  PausableMutex mutex;
  mutex.lock();
  std::atomic<bool> over{false};
  std::atomic<int> reads{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      while (!over) {
        ASSERT_TRUE(mutex.lockBriefly(patience()));
        ++reads;
        mutex.unlock();
      }
    });
  while (reads < 200) const PausableMutex::Pause pause(mutex);
  over = true;
  mutex.unlock();
  for (auto& thread : threads) thread.join();
  EXPECT_GE(reads, 200);
}

// A callback may wait for another thread that looks at a blob, and use its net itself.
TEST(PausableMutex, WhileItPausesItsHolderLocksItAsBefore) {
  PausableMutex mutex;
  mutex.lock();
  {
    const PausableMutex::Pause pause(mutex);
    std::thread([&] {
      ASSERT_TRUE(mutex.lockBriefly(patience()));
      mutex.unlock();
      EXPECT_FALSE(mutex.try_lock());
    }).join();
    const Hold again(mutex);
    const PausableMutex::Pause within(mutex);  // a step within a step's callback
    std::thread([&] {
      ASSERT_TRUE(mutex.lockBriefly(patience()));
      mutex.unlock();
      EXPECT_FALSE(mutex.try_lock());
    }).join();
  }
  bool read = true;
  std::thread([&] { read = mutex.lockBriefly(Deadline::after(0.02)); }).join();
  EXPECT_FALSE(read);
  mutex.unlock();
}

TEST(PausableMutex, ABriefAccessGivesUpAtItsDeadline) {
  PausableMutex mutex;
  mutex.lock();
  bool got = true;
  std::thread([&] { got = mutex.lockBriefly(Deadline::after(0.05)); }).join();
  EXPECT_FALSE(got);
  { const PausableMutex::Pause pause(mutex); }  // waits for nobody
  mutex.unlock();
}

// 4 threads, a plain counter: a data race or a lost turn shows as another sum, and under ThreadSanitizer.
TEST(PausableMutex, OneAtATime) {
  PausableMutex mutex;
  int64_t sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5000; ++i) {
        if (t % 2)
          mutex.lock();
        else
          ASSERT_TRUE(mutex.lockBriefly(patience()));
        ++sum;
        if (t % 2) const PausableMutex::Pause pause(mutex);
        ++sum;
        mutex.unlock();
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(sum, 40000);
}

}  // namespace
}  // namespace crema
