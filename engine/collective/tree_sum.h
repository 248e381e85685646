// Sums over ranks in the order of the tree (collective/tree.h): planned once as a list of instructions over numbered
// slots. A trainer runs it with its ranks as leaves, a mesh with the sums that workers send.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "collective/tree.h"

namespace crema::collective {

struct TreePlan {
  enum class Action { kLoad, kAdd };
  struct Instruction {
    Action action;
    int slot;               // kLoad: slot <- leaf. kAdd: slot <- slot + (slot + 1)
    int leaf = -1;          // for kLoad
    bool outlives = false;  // for kLoad: another leaf is loaded before this one is used
  };
  std::vector<Instruction> instructions;
  size_t roots = 0;
  int slots = 0;  // in use at once: at most roots + log2 of the leaves of a root
};

// The sums of these nodes; that of roots[i] ends in slot i. Leaves are nodes for which isLeaf holds, numbered in the
// order in which they are loaded, from left to right.
TreePlan planTree(const std::vector<RankRange>& roots, const std::function<bool(RankRange)>& isLeaf);

class TreeSum {
 public:
  TreeSum() = default;
  explicit TreeSum(TreePlan plan);

  // load(leaf) gives `count` floats, valid until the run ends. Memory: `count` floats for each slot that is added into or copied to.
  void run(int64_t count, const std::function<const float*(int leaf)>& load);

  // The same where a leaf is valid until the next one is loaded, and the last one comes in stretches. First everything
  // before the last leaf, whose values will be at `last`: load() is not called for it.
  void runBeforeLast(int64_t count, const std::function<const float*(int leaf)>& load, const float* last);
  // Then what is behind it, for elements [from, to), which are there; each element once.
  void addLast(int64_t from, int64_t to);

  size_t roots() const { return plan_.roots; }
  // A leaf itself, or a buffer of this object: after run(), and after runBeforeLast(), by when it stays where it is.
  const float* root(size_t i) const { return slots_[i]; }

 private:
  float* buffer(int slot, int64_t count);
  void add(int slot, int64_t from, int64_t to);

  TreePlan plan_;
  size_t lastLoad_ = 0;  // of the instructions
  std::vector<const float*> slots_;
  std::vector<std::vector<float>> buffers_;
};

}  // namespace crema::collective
