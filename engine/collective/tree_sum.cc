#include "collective/tree_sum.h"

#include <algorithm>

namespace crema::collective {
namespace {

class Planner {
 public:
  explicit Planner(const std::function<bool(RankRange)>& isLeaf) : isLeaf_(isLeaf) {}

  void plan(RankRange node, int slot, bool outlives) {
    made.slots = std::max(made.slots, slot + 1);
    if (isLeaf_(node)) return add({TreePlan::Action::kLoad, slot, leaves_++, outlives});
    const int mid = treeMiddle(node.lo, node.hi);
    plan({node.lo, mid}, slot, true);
    plan({mid, node.hi}, slot + 1, false);
    add({TreePlan::Action::kAdd, slot});
  }

  TreePlan made;

 private:
  void add(const TreePlan::Instruction& instruction) { made.instructions.push_back(instruction); }

  const std::function<bool(RankRange)>& isLeaf_;
  int leaves_ = 0;
};

}  // namespace

TreePlan planTree(const std::vector<RankRange>& roots, const std::function<bool(RankRange)>& isLeaf) {
  Planner planner(isLeaf);
  planner.made.roots = roots.size();
  for (size_t i = 0; i < roots.size(); ++i) planner.plan(roots[i], static_cast<int>(i), i + 1 < roots.size());
  return planner.made;
}

TreeSum::TreeSum(TreePlan plan)
    : plan_(std::move(plan)), slots_(static_cast<size_t>(plan_.slots)), buffers_(static_cast<size_t>(plan_.slots)) {
  for (size_t i = 0; i < plan_.instructions.size(); ++i)
    if (plan_.instructions[i].action == TreePlan::Action::kLoad) lastLoad_ = i;
}

float* TreeSum::buffer(int slot, int64_t count) {
  auto& values = buffers_[static_cast<size_t>(slot)];
  if (values.size() < static_cast<size_t>(count)) values.resize(static_cast<size_t>(count));
  return values.data();
}

void TreeSum::add(int slot, int64_t from, int64_t to) {
  const float*& value = slots_[static_cast<size_t>(slot)];
  const float *left = value, *right = slots_[static_cast<size_t>(slot) + 1];
  float* sum = buffer(slot, to);  // may be the memory of `left`
#pragma GCC ivdep
  for (int64_t i = from; i < to; ++i) sum[i] = left[i] + right[i];
  value = sum;
}

void TreeSum::run(int64_t count, const std::function<const float*(int leaf)>& load) {
  for (const auto& [action, slot, leaf, _] : plan_.instructions)
    if (action == TreePlan::Action::kLoad)
      slots_[static_cast<size_t>(slot)] = load(leaf);
    else
      add(slot, 0, count);
}

void TreeSum::runBeforeLast(int64_t count, const std::function<const float*(int leaf)>& load, const float* last) {
  for (size_t i = 0; i < lastLoad_; ++i) {
    const auto& [action, slot, leaf, outlives] = plan_.instructions[i];
    if (action == TreePlan::Action::kAdd) {
      add(slot, 0, count);
      continue;
    }
    const float*& value = slots_[static_cast<size_t>(slot)];
    value = load(leaf);
    if (!outlives) continue;
    float* kept = buffer(slot, count);
    std::copy_n(value, count, kept);
    value = kept;
  }
  slots_[static_cast<size_t>(plan_.instructions[lastLoad_].slot)] = last;
}

// To the left of each of these additions is a sum or a leaf that outlived others: both are in the buffer of its slot, so
// that adding one stretch moves nothing that the next one reads.
void TreeSum::addLast(int64_t from, int64_t to) {
  for (size_t i = lastLoad_ + 1; i < plan_.instructions.size(); ++i) add(plan_.instructions[i].slot, from, to);
}

}  // namespace crema::collective
