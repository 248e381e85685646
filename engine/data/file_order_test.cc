#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "data/shard.h"
#include "data/shuffle.h"

namespace crema::data {
namespace {

RandomStream streamOf(int64_t epoch, int64_t file) {
  RandomKey key;
  key.purpose = RandomPurpose::kShuffle;
  key.step = static_cast<uint64_t>(epoch), key.name = static_cast<uint64_t>(file + 1);
  return RandomStream(key);
}

int64_t at(const FileOrder& order, int64_t epoch, int64_t place) {
  return order.at(epoch, place, [&](int64_t file) { return streamOf(epoch, file); });
}

// All ranks together see every record once an epoch, however many they are.
TEST(FileOrder, RanksShareOutEveryEpoch) {
  const std::vector<int64_t> first = {0, 1, 101, 103, 160};
  constexpr int64_t kRecords = 161;
  for (const int ranks : {1, 2, 3, 7}) {
    const FileOrder order(first, kRecords);
    const Sharding sharding{kRecords, 8, ranks};
    for (int64_t epoch = 0; epoch < 6; ++epoch) {
      std::set<int64_t> seen;
      for (int rank = 0; rank < ranks; ++rank)
        for (int64_t p = 0; p < ownedRecords(sharding, rank); ++p)
          EXPECT_TRUE(seen.insert(at(order, epoch, recordIndex(sharding, rank, p))).second);
      EXPECT_EQ(seen.size(), static_cast<size_t>(kRecords));
      EXPECT_EQ(*seen.begin(), 0);
      EXPECT_EQ(*seen.rbegin(), kRecords - 1);
    }
  }
}

// Places can be asked for in any order; the cache of other epochs has no influence.
TEST(FileOrder, DependsOnNothingAskedBefore) {
  const std::vector<int64_t> first = {0, 10, 30};
  const FileOrder asked(first, 60);
  std::vector<int64_t> epochs(12);
  std::iota(epochs.begin(), epochs.end(), 0);
  for (const int64_t back : {0, 1})
    for (size_t i = 0; i < epochs.size(); ++i) {
      const int64_t epoch = epochs[back ? epochs.size() - 1 - i : i];
      const FileOrder fresh(first, 60);
      for (int64_t place = 0; place < 60; ++place) EXPECT_EQ(at(asked, epoch, place), at(fresh, epoch, place));
    }
  std::set<std::vector<int64_t>> orders;
  std::set<int64_t> begins;
  for (const int64_t epoch : epochs) {
    std::vector<int64_t> all;
    for (int64_t place = 0; place < 60; ++place) all.push_back(at(asked, epoch, place));
    begins.insert(all[0] < 10 ? 0 : all[0] < 30 ? 1 : 2);
    orders.insert(all);
  }
  EXPECT_EQ(orders.size(), epochs.size());
  EXPECT_EQ(begins.size(), 3u) << "each file begins an epoch at times";
}

}  // namespace
}  // namespace crema::data
