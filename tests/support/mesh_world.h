// Workers with real sockets in one process, and the sums that they must come to.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "collective/mesh.h"
#include "collective/tree.h"

namespace crema::test {

inline std::vector<float> gradientOf(int rank, size_t count) {
  RandomKey key;
  key.rank = static_cast<uint32_t>(rank);
  const RandomStream r(key);
  std::vector<float> v(count);
  for (size_t i = 0; i < count; ++i) v[i] = static_cast<float>(r.gaussian(i));
  return v;
}

// The tree in plain recursion: what every exchange must give.
inline std::vector<float> treeSum(collective::RankRange node, size_t count) {
  if (node.hi - node.lo == 1) return gradientOf(node.lo, count);
  const int mid = collective::treeMiddle(node.lo, node.hi);
  auto left = treeSum({node.lo, mid}, count);
  const auto right = treeSum({mid, node.hi}, count);
  for (size_t i = 0; i < count; ++i) left[i] += right[i];
  return left;
}

inline constexpr char kMeshToken[] = "0123456789abcdef";

// Workers are threads with real sockets.
struct MeshWorld {
  std::vector<std::unique_ptr<collective::PeerDoor>> doors;
  std::vector<std::string> addresses;
  Secret secret{kMeshToken};
  explicit MeshWorld(int workers, bool sealed = false) {
    secret.sealed = sealed;
    for (int w = 0; w < workers; ++w)
      doors.push_back(std::make_unique<collective::PeerDoor>("127.0.0.1", secret, "a test's port")),
          addresses.push_back(doors.back()->address());
  }
  collective::MeshOptions options(int worker, int ranks) {
    collective::MeshOptions o;
    o.worker = worker, o.workers = static_cast<int>(doors.size()), o.ranks = ranks;
    o.secret = secret, o.peers = addresses, o.door = doors[static_cast<size_t>(worker)].get();
    o.connectTimeout = 10, o.stepTimeout = 10;
    return o;
  }
};

}  // namespace crema::test
