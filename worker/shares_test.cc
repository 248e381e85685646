// The division of ranks among workers of unequal speed, as tables.
#include "worker/shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace crema::worker {
namespace {

TEST(Shares, EqualOnesAreThoseOfTheRun) {
  EXPECT_EQ(equalShares(8, 3), (Shares{3, 3, 2}));
  EXPECT_EQ(equalShares(5, 5), (Shares{1, 1, 1, 1, 1}));
  EXPECT_EQ(endsOf({3, 1, 4}), (std::vector<int>{3, 4, 8}));
}

TEST(Shares, SlowerWorkersGetFewerRanks) {
  const struct {
    std::vector<double> seconds;
    int ranks;
    Shares expected;
  } table[] = {
      {{1, 1, 1}, 9, {3, 3, 3}},
      {{1, 1, 1}, 8, {3, 3, 2}},
      {{1, 2, 1}, 8, {4, 1, 3}},  // 3, 2, 3 takes as long
      {{1, 4, 1}, 8, {4, 1, 3}},
      {{4, 1, 1}, 8, {1, 4, 3}},
      {{1, 100, 100}, 9, {6, 2, 1}},  // twice an equal share at most
      {{1, 1000}, 2, {1, 1}},
      {{1000}, 5, {5}},
      {{1, 1, 1, 1}, 4, {1, 1, 1, 1}},
      {{3, 1}, 8, {2, 6}},
      {{0.5, 0.25, 0.125}, 7, {1, 2, 4}},
      {{9, 1, 9}, 8, {1, 6, 1}},  // ranks 1 to 6 are four subtrees, in three buffers
  };
  for (const auto& row : table)
    EXPECT_EQ(sharesFor(row.seconds, row.ranks), row.expected) << testing::PrintToString(row.seconds);
}

// All divisions of the ranks with the same bounds; calls f with each.
void forAllShares(int ranks, int workers, int most, Shares& so, const std::function<void(const Shares&)>& f) {
  if (workers == 0) {
    if (ranks == 0) f(so);
    return;
  }
  for (int n = 1; n <= std::min(ranks - workers + 1, most); ++n) {
    so.push_back(n);
    forAllShares(ranks - n, workers - 1, most, so, f);
    so.pop_back();
  }
}

TEST(Shares, NoOtherDivisionIsShorter) {
  const std::vector<double> speeds{1, 1.3, 2, 3.7, 9};
  int bounded = 0;
  for (int ranks = 3; ranks <= 12; ++ranks)
    for (const double a : speeds)
      for (const double b : speeds)
        for (const double c : speeds) {
          const std::vector<double> seconds{a, b, c};
          const auto longest = [&](const Shares& s) { return std::max({s[0] * a, s[1] * b, s[2] * c}); };
          const Shares mine = sharesFor(seconds, ranks);
          ASSERT_EQ(std::accumulate(mine.begin(), mine.end(), 0), ranks);
          double least = longest(mine);
          Shares so;
          forAllShares(ranks, 3, 2 * ((ranks + 2) / 3), so,
                       [&](const Shares& s) { least = std::min(least, longest(s)); });
          ASSERT_GE(longest(equalShares(ranks, 3)), longest(mine))
              << ranks << " ranks, " << testing::PrintToString(seconds);
          bounded += longest(mine) > least;
        }
  EXPECT_LT(bounded, 100) << "of 1250: some worker would have too many gradients in memory";
}

// n workers with these seconds per rank, over `steps` steps with `waited` seconds for each sum.
std::vector<Spent> spent(const Shares& shares, const std::vector<double>& seconds, int64_t steps = 20,
                         double waited = 0) {
  std::vector<Spent> all;
  for (size_t w = 0; w < shares.size(); ++w) {
    const int64_t passes = steps * shares[w];
    all.push_back({passes, seconds[w] * static_cast<double>(passes), steps, waited * static_cast<double>(steps)});
  }
  return all;
}

TEST(BetterShares, AreThoseWithWhichAStepIsClearlyShorter) {
  const auto better = betterShares({3, 3, 2}, spent({3, 3, 2}, {0.1, 0.4, 0.1}));
  ASSERT_TRUE(better);
  EXPECT_EQ(better->shares, (Shares{4, 1, 3}));
  EXPECT_NEAR(better->before, 1.2, 1e-12);
  EXPECT_NEAR(better->after, 0.4, 1e-12);
}

TEST(BetterShares, AreNotThereForLittle) {
  EXPECT_FALSE(betterShares({3, 3, 2}, spent({3, 3, 2}, {0.1, 0.1, 0.1}))) << "all are equally fast";
  EXPECT_FALSE(betterShares({4, 4}, spent({4, 4}, {0.1, 0.13}))) << "five of 0.1 are 0.5 and not 0.52";
  EXPECT_TRUE(betterShares({4, 4}, spent({4, 4}, {0.1, 0.16}))) << "five of 0.1 are 0.5 and not 0.64";
  EXPECT_FALSE(betterShares({1, 1, 1}, spent({1, 1, 1}, {0.1, 0.9, 0.1}))) << "each has one rank";
  EXPECT_FALSE(betterShares({4, 1, 3}, spent({4, 1, 3}, {0.1, 0.4, 0.1}))) << "they are divided so already";
  EXPECT_FALSE(betterShares({3}, spent({3}, {0.1})));
}

// What is gained in passes is little beside a long exchange, which grows as well: 5 and 3 ranks are four subtrees, 4 and 4
// are two.
TEST(BetterShares, CountWhatTheExchangeCosts) {
  const Shares equal{4, 4};
  EXPECT_TRUE(betterShares(equal, spent(equal, {0.1, 0.16}, 20, 0.01)));
  const auto better = betterShares(equal, spent(equal, {0.1, 0.16}, 20, 0.01));
  EXPECT_NEAR(better->before, 0.65, 1e-12);
  EXPECT_NEAR(better->after, 0.5 + 0.01 * 6 / 4, 1e-12);
  EXPECT_FALSE(betterShares(equal, spent(equal, {0.1, 0.16}, 20, 0.1)));
}

// The first worker has waited for the second one: that is not the exchange.
TEST(BetterShares, TakeTheShortestWaitForTheExchange) {
  auto all = spent({4, 4}, {0.1, 0.4});
  all[0].waitedSeconds = 20 * 1.2;
  const auto better = betterShares({4, 4}, all);
  ASSERT_TRUE(better);
  EXPECT_NEAR(better->before, 1.6, 1e-12);
}

// Of a worker that has fewer ranks in front of the others': those form many subtrees. It is relieved as far as memory goes.
TEST(Shares, NoWorkerHasMoreGradientsInMemoryThanOneOfAllRanks) {
  EXPECT_EQ(sharesFor({0.1, 0.9}, 8), (Shares{7, 1}));
  EXPECT_EQ(sharesFor({0.9, 0.1}, 8), (Shares{2, 6}));
  for (const int ranks : {16, 64})
    for (const Shares& s : {sharesFor({0.9, 0.1}, ranks), sharesFor({0.1, 0.9, 0.1}, ranks)}) {
      int from = 0, most = 1;
      for (int r = 1; r < ranks; r *= 2) ++most;
      for (const int to : endsOf(s)) {
        const auto roots = collective::wholeSubtrees({from, to}, ranks);
        EXPECT_LE(collective::planTree(roots, [](auto r) { return r.hi - r.lo == 1; }).slots, most)
            << testing::PrintToString(s);
        from = to;
      }
      EXPECT_NE(s, equalShares(ranks, static_cast<int>(s.size())));
    }
}

TEST(BetterShares, AreNotThereBeforeEnoughIsMeasured) {
  const Shares shares{3, 3, 2};
  EXPECT_FALSE(betterShares(shares, spent(shares, {0.1, 0.4, 0.1}, 9)));
  EXPECT_TRUE(betterShares(shares, spent(shares, {0.1, 0.4, 0.1}, 10)));
  auto all = spent(shares, {0.1, 0.4, 0.1});
  all[2] = {};
  EXPECT_FALSE(betterShares(shares, all)) << "nothing is known of one of them";
  all[2] = {5, -1, 50, 0};
  EXPECT_FALSE(betterShares(shares, all));
}

}  // namespace
}  // namespace crema::worker
