#include <algorithm>
#include <numeric>

#include "picture/graph_places.h"

namespace crema::picture {
namespace {

using Near = std::vector<size_t> Place::*;

class Order {
 public:
  explicit Order(Places& p) : p_(p) {
    depthFirst();
    best_ = p_.ranks, fewest_ = crossings();
    for (int sweep = 0; sweep < 12 && fewest_ > 0; ++sweep) {
      if (sweep % 2)
        for (size_t r = p_.ranks.size(); r-- > 0;) settle(p_.ranks[r], &Place::below, sweep % 4 > 1);
      else
        for (auto& r : p_.ranks) settle(r, &Place::above, sweep % 4 > 1);
      exchange();
      if (const size_t now = crossings(); now < fewest_) best_ = p_.ranks, fewest_ = now;
    }
    p_.ranks = best_;
    for (const auto& r : p_.ranks) number(r);
  }

 private:
  // The initial order: depth first, in the order of the text, so that connected boxes start side by side.
  void depthFirst() {
    std::vector<bool> seen(p_.all.size());
    std::vector<std::vector<size_t>> ranks(p_.ranks.size());
    for (size_t start = 0; start < p_.all.size(); ++start) {
      std::vector<size_t> todo = {start};
      while (!todo.empty()) {
        const size_t i = todo.back();
        todo.pop_back();
        if (seen[i]) continue;
        seen[i] = true;
        ranks[p_.all[i].rank].push_back(i);
        const auto& below = p_.all[i].below;
        todo.insert(todo.end(), below.rbegin(), below.rend());
      }
    }
    p_.ranks = std::move(ranks);
    for (const auto& r : p_.ranks) number(r);
  }
  void number(const std::vector<size_t>& rank) {
    for (size_t k = 0; k < rank.size(); ++k) p_.all[rank[k]].position = k;
  }
  void settle(std::vector<size_t>& rank, Near near, bool turned) {
    std::vector<std::pair<double, size_t>> centres;
    for (const size_t i : rank) {
      const auto& around = p_.all[i].*near;
      double sum = 0;
      for (const size_t n : around) sum += static_cast<double>(p_.all[n].position);
      centres.emplace_back(
          around.empty() ? static_cast<double>(p_.all[i].position) : sum / static_cast<double>(around.size()), i);
    }
    if (turned) std::reverse(centres.begin(), centres.end());
    std::stable_sort(centres.begin(), centres.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t k = 0; k < rank.size(); ++k) rank[k] = centres[k].second;
    number(rank);
  }
  // How many pairs of edges cross when a stands left of b.
  size_t crossed(size_t a, size_t b) const {
    size_t sum = 0;
    for (const Near near : {&Place::above, &Place::below})
      for (const size_t left : p_.all[a].*near)
        for (const size_t right : p_.all[b].*near) sum += p_.all[left].position > p_.all[right].position;
    return sum;
  }
  void exchange() {
    bool better = true;
    for (int round = 0; round < 8 && better; ++round) {
      better = false;
      for (auto& rank : p_.ranks)
        for (size_t k = 1; k < rank.size(); ++k) {
          if (crossed(rank[k - 1], rank[k]) <= crossed(rank[k], rank[k - 1])) continue;
          std::swap(rank[k - 1], rank[k]);
          p_.all[rank[k - 1]].position = k - 1, p_.all[rank[k]].position = k;
          better = true;
        }
    }
  }
  // Inversions, by a Fenwick tree for each pair of ranks.
  size_t crossings() const {
    size_t sum = 0;
    for (size_t r = 0; r + 1 < p_.ranks.size(); ++r) {
      std::vector<size_t> tree(p_.ranks[r + 1].size() + 1);
      size_t all = 0;
      for (const size_t i : p_.ranks[r]) {
        const auto& below = p_.all[i].below;
        for (const size_t n : below) {
          size_t notRight = 0;
          for (size_t k = p_.all[n].position + 1; k > 0; k &= k - 1) notRight += tree[k];
          sum += all - notRight;
        }
        for (const size_t n : below)
          for (size_t k = p_.all[n].position + 1; k < tree.size(); k += k & (~k + 1)) ++tree[k];
        all += below.size();
      }
    }
    return sum;
  }

  Places& p_;
  std::vector<std::vector<size_t>> best_;
  size_t fewest_ = 0;
};

}  // namespace

void orderRanks(Places& places) { Order{places}; }

}  // namespace crema::picture
