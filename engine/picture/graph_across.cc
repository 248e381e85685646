#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "picture/graph_places.h"

namespace crema::picture {
namespace {

using Near = std::vector<size_t> Place::*;
using Ranks = std::vector<std::vector<size_t>>;

class Across {
 public:
  explicit Across(Places& p) : p_(p) {
    findConflicts();
    std::array<std::vector<double>, 4> found;
    for (size_t way = 0; way < 4; ++way) found[way] = one(way & 1, way & 2);
    balance(found);
    tighten();
  }

 private:
  // Marks edges that cross a vertical segment of a long edge: the long one stays straight, they may not.
  void findConflicts() {
    for (size_t r = 0; r + 1 < p_.ranks.size(); ++r) {
      std::vector<std::pair<size_t, size_t>> inner;  // positions above and below
      for (const size_t i : p_.ranks[r])
        for (const size_t n : p_.all[i].below)
          if (!p_.all[i].box && !p_.all[n].box) inner.emplace_back(p_.all[i].position, p_.all[n].position);
      for (const size_t i : p_.ranks[r])
        for (const size_t n : p_.all[i].below) {
          if (!p_.all[i].box && !p_.all[n].box) continue;
          const size_t a = p_.all[i].position, b = p_.all[n].position;
          if (std::any_of(inner.begin(), inner.end(),
                          [&](const auto& e) { return e.first < a ? e.second > b : e.first > a && e.second < b; }))
            conflicts_.insert(std::minmax(i, n));
        }
    }
  }

  // Chains of places that get one x: each joins the median of its neighbours in the rank before, if no chain made
  // before is crossed by that.
  std::vector<size_t> chains(const Ranks& ranks, Near near) const {
    std::vector<size_t> root(p_.all.size()), position(p_.all.size());
    for (size_t i = 0; i < root.size(); ++i) root[i] = i;
    for (const auto& rank : ranks)
      for (size_t k = 0; k < rank.size(); ++k) position[rank[k]] = k;
    for (const auto& rank : ranks) {
      size_t free = 0;  // positions before this one are taken
      for (const size_t i : rank) {
        std::vector<size_t> around = p_.all[i].*near;
        std::sort(around.begin(), around.end(), [&](size_t a, size_t b) { return position[a] < position[b]; });
        for (size_t m = around.empty() ? 2 : 0; m < 2; ++m) {
          const size_t n = around[(around.size() - 1 + m) / 2];
          if (root[i] != i || position[n] < free || conflicts_.count(std::minmax(i, n))) continue;
          root[i] = root[n], free = position[n] + 1;
        }
      }
    }
    return root;
  }

  // Moves chains as far left as their left neighbours allow, then right as far as those on the right allow.
  std::vector<double> compacted(const Ranks& ranks, const std::vector<size_t>& root, bool mirrored) const {
    struct Step {
      size_t to;
      double distance;
    };
    std::vector<std::vector<Step>> after(p_.all.size());
    std::vector<size_t> waits(p_.all.size()), order;
    for (const auto& rank : ranks)
      for (size_t k = 1; k < rank.size(); ++k) {
        const Place &a = p_.all[rank[k - 1]], &b = p_.all[rank[k]];
        after[root[rank[k - 1]]].push_back({root[rank[k]], mirrored ? a.left + b.right : a.right + b.left});
        ++waits[root[rank[k]]];
      }
    std::vector<double> x(p_.all.size());
    for (size_t i = 0; i < x.size(); ++i)
      if (root[i] == i && !waits[i]) order.push_back(i);
    for (size_t k = 0; k < order.size(); ++k)
      for (const Step& s : after[order[k]]) {
        x[s.to] = std::max(x[s.to], x[order[k]] + s.distance);
        if (--waits[s.to] == 0) order.push_back(s.to);
      }
    for (size_t k = order.size(); k-- > 0;) {
      const auto& steps = after[order[k]];
      if (steps.empty()) continue;
      double most = 1e300;
      for (const Step& s : steps) most = std::min(most, x[s.to] - s.distance);
      x[order[k]] = std::max(x[order[k]], most);
    }
    for (size_t i = 0; i < x.size(); ++i) x[i] = x[root[i]];
    return x;
  }

  std::vector<double> one(bool upwards, bool mirrored) const {
    Ranks ranks = p_.ranks;
    if (upwards) std::reverse(ranks.begin(), ranks.end());
    if (mirrored)
      for (auto& r : ranks) std::reverse(r.begin(), r.end());
    auto x = compacted(ranks, chains(ranks, upwards ? &Place::below : &Place::above), mirrored);
    if (mirrored)
      for (double& v : x) v = -v;
    return x;
  }

  // Aligns the four layouts with the narrowest one; a place's x is the mean of the two middle values.
  void balance(std::array<std::vector<double>, 4>& found) {
    std::array<double, 4> low, high;
    size_t narrowest = 0;
    for (size_t way = 0; way < 4; ++way) {
      low[way] = 1e300, high[way] = -1e300;
      for (size_t i = 0; i < p_.all.size(); ++i) {
        low[way] = std::min(low[way], found[way][i] - p_.all[i].left);
        high[way] = std::max(high[way], found[way][i] + p_.all[i].right);
      }
      if (high[way] - low[way] < high[narrowest] - low[narrowest] - 1e-6) narrowest = way;
    }
    for (size_t i = 0; i < p_.all.size(); ++i) {
      std::array<double, 4> x;
      for (size_t way = 0; way < 4; ++way)
        x[way] = found[way][i] + (way & 2 ? high[narrowest] - high[way] : low[narrowest] - low[way]);
      std::sort(x.begin(), x.end());
      p_.all[i].x = (x[1] + x[2]) / 2;
    }
  }

  // The four layouts give straight lines, not short ones: so straight pieces move as a whole to the median of what they
  // are joined to, as far as their neighbours allow. This alternates between the first pieces and those that have
  // become straight.
  void tighten() {
    const auto first = pieces();
    for (int round = 0; round < 16; ++round) {
      auto all = round % 2 ? pieces() : first;
      std::stable_sort(all.begin(), all.end(),
                       [&](const auto& a, const auto& b) { return p_.all[a[0]].x < p_.all[b[0]].x; });
      if (round % 4 > 1) std::reverse(all.begin(), all.end());
      std::vector<size_t> piece(p_.all.size());
      for (size_t k = 0; k < all.size(); ++k)
        for (const size_t i : all[k]) piece[i] = k;
      for (const auto& members : all) move(members, piece);
    }
  }
  std::vector<std::vector<size_t>> pieces() const {
    std::vector<bool> seen(p_.all.size());
    std::vector<std::vector<size_t>> all;
    for (size_t i = 0; i < seen.size(); ++i) {
      if (seen[i]) continue;
      std::vector<size_t> members = {i};
      seen[i] = true;
      for (size_t k = 0; k < members.size(); ++k)
        for (const Near near : {&Place::above, &Place::below})
          for (const size_t n : p_.all[members[k]].*near)
            if (!seen[n] && std::fabs(p_.all[n].x - p_.all[i].x) < 1e-6) seen[n] = true, members.push_back(n);
      all.push_back(std::move(members));
    }
    return all;
  }
  void move(const std::vector<size_t>& members, const std::vector<size_t>& piece) {
    double low = -1e300, high = 1e300;
    std::vector<double> joined;
    for (const size_t i : members) {
      const Place& p = p_.all[i];
      const auto& rank = p_.ranks[p.rank];
      if (p.position > 0)
        low = std::max(low, p_.all[rank[p.position - 1]].x + p_.all[rank[p.position - 1]].right + p.left);
      if (p.position + 1 < rank.size())
        high = std::min(high, p_.all[rank[p.position + 1]].x - p_.all[rank[p.position + 1]].left - p.right);
      for (const Near near : {&Place::above, &Place::below})
        for (const size_t n : p.*near)
          if (piece[n] != piece[i]) joined.push_back(p_.all[n].x);
    }
    if (joined.empty()) return;
    std::sort(joined.begin(), joined.end());
    const double now = p_.all[members[0]].x;
    double wanted = std::clamp(now, joined[(joined.size() - 1) / 2], joined[joined.size() / 2]);
    wanted = wanted > now ? std::max(now, std::min(wanted, high)) : std::min(now, std::max(wanted, low));
    for (const size_t i : members) p_.all[i].x = wanted;
  }

  Places& p_;
  std::set<std::pair<size_t, size_t>> conflicts_;
};

}  // namespace

void placeAcross(Places& places) { Across{places}; }

}  // namespace crema::picture
