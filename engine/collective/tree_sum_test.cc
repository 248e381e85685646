// Planned tree sums against the recursion that collective/tree.h describes, for every way in which workers divide the
// ranks.
#include "collective/tree_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "collective/tag.h"

namespace crema::collective {
namespace {

// Values whose float sum depends on the order of additions.
float valueOf(int rank, int64_t i) {
  return std::ldexp(1.f + static_cast<float>((rank * 37 + i * 11) % 101), rank % 24);
}

float recursion(RankRange node, int64_t i) {
  if (node.hi - node.lo == 1) return valueOf(node.lo, i);
  const int mid = treeMiddle(node.lo, node.hi);
  return recursion({node.lo, mid}, i) + recursion({mid, node.hi}, i);
}

constexpr int64_t kCount = 37;

// One buffer for all leaves, as a trainer has one gradient: loading a leaf overwrites the one before.
class OneGradient {
 public:
  explicit OneGradient(RankRange mine) : first_(mine.lo), values_(kCount) {}
  const float* operator()(int leaf) { return load(leaf, 0, kCount); }
  const float* load(int leaf, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) values_[static_cast<size_t>(i)] = valueOf(first_ + leaf, i);
    return values_.data();
  }
  const float* values() const { return values_.data(); }

 private:
  int first_;
  std::vector<float> values_;
};

// The last leaf comes from its end, as a backward pass completes it, and is overwritten as soon as it was added where it
// is not a root itself. Roots stay where they are.
void runInStretches(TreeSum& sum, OneGradient& gradient, int last) {
  sum.runBeforeLast(kCount, std::ref(gradient), gradient.values());
  std::vector<const float*> roots;
  for (size_t r = 0; r < sum.roots(); ++r) roots.push_back(sum.root(r));
  const std::vector<int64_t> cuts{kCount, 36, 20, 20, 3, 0};
  for (size_t i = 1; i < cuts.size(); ++i) {
    gradient.load(last, cuts[i], cuts[i - 1]);
    sum.addLast(cuts[i], cuts[i - 1]);
    if (roots.back() != gradient.values()) gradient.load(last + 1, cuts[i], cuts[i - 1]);
  }
  for (size_t r = 0; r < sum.roots(); ++r) EXPECT_EQ(sum.root(r), roots[r]);
}

TEST(TreeSum, OfRanksThatComeOneAfterTheOtherIsTheRecursions) {
  for (int ranks = 1; ranks <= 33; ++ranks)
    for (int workers = 1; workers <= ranks; ++workers)
      for (int w = 0; w < workers; ++w) {
        const RankRange mine = ranksOfWorker(w, workers, ranks);
        const auto roots = wholeSubtrees(mine, ranks);
        const TreePlan plan = planTree(roots, [](RankRange r) { return r.hi - r.lo == 1; });
        EXPECT_LE(plan.slots, static_cast<int>(roots.size()) + static_cast<int>(std::log2(mine.hi - mine.lo)) + 1);
        TreeSum sum(plan);
        OneGradient gradient(mine);
        for (int time = 0; time < 2; ++time) runInStretches(sum, gradient, mine.hi - mine.lo - 1);
        for (size_t r = 0; r < roots.size(); ++r)
          for (int64_t i = 0; i < kCount; ++i)
            ASSERT_EQ(sum.root(r)[i], recursion(roots[r], i)) << ranks << " ranks, worker " << w << " of " << workers;
      }
}

TEST(TreeSum, OfWorkersSubtreesIsTheSameForAnyNumberOfWorkers) {
  for (const int ranks : {1, 2, 3, 5, 8, 13, 16, 31})
    for (int workers = 1; workers <= ranks; ++workers) {
      std::vector<RankRange> leaves;
      for (int w = 0; w < workers; ++w)
        for (const RankRange& r : wholeSubtrees(ranksOfWorker(w, workers, ranks), ranks)) leaves.push_back(r);
      std::vector<std::vector<float>> sums;
      for (const RankRange& r : leaves)
        for (sums.emplace_back(); sums.back().size() < kCount;)
          sums.back().push_back(recursion(r, static_cast<int64_t>(sums.back().size())));
      const auto before = sums;
      const auto isLeaf = [&](RankRange r) { return std::find(leaves.begin(), leaves.end(), r) != leaves.end(); };
      TreeSum sum(planTree({{0, ranks}}, isLeaf));
      for (const int64_t count : {kCount, int64_t{5}}) {
        sum.run(count, [&](int leaf) { return sums[static_cast<size_t>(leaf)].data(); });
        for (int64_t i = 0; i < count; ++i)
          ASSERT_EQ(sum.root(0)[i], recursion({0, ranks}, i)) << ranks << "/" << workers;
      }
      EXPECT_EQ(sums, before) << "leaves are the caller's";
    }
}

// Tags travel between workers, so their numbers must stay different.
TEST(Tag, EveryPurposeHasNumbersOfItsOwn) {
  EXPECT_EQ(Tag::gradient(17).value(), 17u);
  EXPECT_EQ(Tag::beginning(17).value(), (uint64_t{1} << 47) + 17);
  EXPECT_EQ(Tag::test(0, 17).value(), (uint64_t{1} << 48) + 17);
  EXPECT_EQ(Tag::test(2, 17).value(), (uint64_t{3} << 48) + 17);
  EXPECT_EQ(Tag::state(17).value(), (uint64_t{1} << 60) + 17);
  EXPECT_EQ(Tag::barrier(17).value(), (uint64_t{1} << 61) + 17);
  EXPECT_EQ(Tag::gradient(17).text(), "step 17");
}

}  // namespace
}  // namespace crema::collective
