// The sum over a mesh has one set of bits, whoever computes which ranks.
#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <vector>

#include "collective/mesh.h"
#include "collective/tree.h"
#include "support/mesh_world.h"

namespace crema::collective {
namespace {

using crema::test::treeSum;
using World = crema::test::MeshWorld;

std::vector<RankRange> sharesOf(int workers, int ranks) {
  std::vector<RankRange> shares;
  for (int w = 0; w < workers; ++w) shares.push_back(ranksOfWorker(w, workers, ranks));
  return shares;
}

void checkWorld(const std::vector<RankRange>& shares, size_t count, bool sealed = false) {
  const int workers = static_cast<int>(shares.size()), ranks = shares.back().hi;
  SCOPED_TRACE(testing::Message() << workers << " workers, " << ranks << " ranks, the first " << shares[0].hi << ", "
                                  << count << " values");
  World world(workers, sealed);
  const auto want = treeSum({0, ranks}, count);
  std::vector<std::future<std::vector<float>>> results;
  for (int w = 0; w < workers; ++w)
    results.push_back(std::async(std::launch::async, [&, w] {
      MeshOptions options = world.options(w, ranks);
      options.shares = shares;
      Mesh mesh(options);
      std::vector<std::vector<float>> sums;
      for (const RankRange& node : wholeSubtrees(shares[static_cast<size_t>(w)], ranks))
        sums.push_back(treeSum(node, count));
      std::vector<float> total(count);
      for (int64_t step = 0; step < 3; ++step) {
        std::vector<const float*> pieces;
        for (auto& s : sums) pieces.push_back(s.data());
        mesh.allReduce(pieces, total.data(), static_cast<int64_t>(count), Tag::gradient(step));
      }
      return total;
    }));
  for (auto& r : results) {
    const auto got = r.get();
    EXPECT_TRUE(count == 0 || std::memcmp(got.data(), want.data(), count * sizeof(float)) == 0);
  }
}

void checkWorld(int workers, int ranks, size_t count, bool sealed = false) {
  checkWorld(sharesOf(workers, ranks), count, sealed);
}

// Slower workers have fewer ranks: all divisions of up to eight ranks among three.
TEST(Mesh, SameBitsForEveryDivisionOfTheRanks) {
  for (int ranks = 3; ranks <= 8; ++ranks)
    for (int a = 1; a < ranks - 1; ++a)
      for (int b = a + 1; b < ranks; ++b) checkWorld({{0, a}, {a, b}, {b, ranks}}, 1000);
}

TEST(Mesh, SameBitsForEveryWorld) {
  for (int workers : {1, 2, 3, 4, 5, 8, 13})
    for (int ranks : {workers, workers + 1, 2 * workers, 16})
      if (ranks >= workers) checkWorld(workers, ranks, 1000);
  for (size_t count :
       {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{17}, size_t{33}, size_t{4096}, size_t{70001}})
    checkWorld(3, 5, count);
  checkWorld(2, 2, 2000000);
  checkWorld(3, 5, 70001, true);
  checkWorld(2, 2, 2000000, true);
}

}  // namespace
}  // namespace crema::collective
