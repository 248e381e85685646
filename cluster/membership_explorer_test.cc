// Walks through every order of messages, losses and failures of small runs (tests/support/membership_world.h). In every
// state that can be reached:
//   - a step is not done by an older generation after a newer one has done it, and no generation begins more than a step
//     before the one that began last;
//   - the run is given up for want of members only when none is left that has a state, or the rules ask for more;
//   - the run's end can be reached without another loss, another process that comes, and anything that a ghost does; and as generations cannot
//     go on without end, a run in which whatever stays possible happens at some time does end.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "support/membership_world.h"

namespace crema::cluster {
namespace {

using test::kSteps;
using test::Message;
using test::Player;
using test::World;

struct Limits {
  int kills = 0, spawns = 0;
  std::pair<int, int> apart{-1, -1};  // two members that cannot reach each other
  int divisions = 0;                  // how often other shares may be wanted
  int ghosts = 0;                     // how many may be given up that live
};

class Explorer {
 public:
  Explorer(const Membership::Rules& rules, const Limits& limits) : rules_(rules), limits_(limits) {}
  // Visits all states; returns how many.
  size_t run() {
    std::vector<std::pair<World, int>> todo;
    todo.emplace_back(World(rules_), number(World(rules_)));
    while (!todo.empty() && !testing::Test::HasFailure()) {
      const auto [world, at] = std::move(todo.back());
      todo.pop_back();
      ends_.insert(world.end);
      if (world.end != World::kGoesOn) ended_.push_back(at);
      judge(world);
      for (Next& next : successors(world)) {
        const size_t before = from_.size();
        const int to = number(next.world);
        if (!next.byChance) from_[static_cast<size_t>(to)].push_back(at);
        if (from_.size() > before) todo.emplace_back(std::move(next.world), to);
      }
    }
    if (!testing::Test::HasFailure()) checkEnds();
    return from_.size();
  }
  const std::set<World::End>& ends() const { return ends_; }

 private:
  struct Next {
    World world;
    bool byChance;  // nobody can count on it
  };
  int number(const World& world) {
    const auto [found, isNew] = numbers_.try_emplace(world.key(), static_cast<int>(numbers_.size()));
    if (isNew) from_.emplace_back();
    return found->second;
  }

  void judge(const World& w) const {
    // Each loss and each process that comes begins one, and each change of shares; so does each failure of two members to meet,
    // three times at most.
    EXPECT_LE(static_cast<int>(w.membership.generation()), 6 + 5 * (w.kills + w.ghostsMade + w.spawns) + w.divisions)
        << "without end: " << w.key();
    const bool mayGoOn = rules_.sharesMove && rules_.replacement != Replacement::kFail && rules_.least == 0;
    if (w.end != World::kTooFew || !mayGoOn || w.membership.phase() == Membership::Phase::kGathering) return;
    for (const Player& p : w.players) EXPECT_FALSE(p.state) << "one is left that could go on: " << w.key();
  }

  // Backward from the ends.
  void checkEnds() const {
    std::vector<bool> ends(from_.size());
    std::vector<int> todo = ended_;
    while (!todo.empty()) {
      const auto at = static_cast<size_t>(todo.back());
      todo.pop_back();
      if (ends[at]) continue;
      ends[at] = true;
      todo.insert(todo.end(), from_[at].begin(), from_[at].end());
    }
    for (const auto& [key, i] : numbers_)
      if (!ends[static_cast<size_t>(i)]) {
        ADD_FAILURE() << "it goes on without end from " << key;
        return;
      }
  }

  std::vector<Next> successors(const World& w) const;
  template <class Add>
  void ownMoves(const World& w, size_t i, const Add& add) const;
  template <class Move>
  void ghostMoves(const World& w, size_t i, const Move& move) const;

  Membership::Rules rules_;
  Limits limits_;
  std::unordered_map<std::string, int> numbers_;
  std::vector<std::vector<int>> from_;  // by state: those from which it is reached, not by chance
  std::vector<int> ended_;
  std::set<World::End> ends_;
};

template <class Add>
void Explorer::ownMoves(const World& w, size_t i, const Add& add) const {
  const Player& p = w.players[i];
  const int seat = static_cast<int>(i);
  if (p.works() && p.leaves) add([i](World& n) { n.pause(i, -1, false); });
  if (p.is == Player::kMeets && w.canMeet(p, seat, limits_.apart)) add([i](World& n) { World::meet(n.players[i]); });
  if (p.is == Player::kComputes && p.iteration < kSteps && w.canSum(p)) add([i](World& n) { n.doStep(n.players[i]); });
  if (p.is == Player::kComputes && p.iteration == kSteps)
    add([i](World& n) {
      n.players[i].is = Player::kFinished;
      n.up[i].push_back({Message::kFinished});
    });
  if (w.atBorder(p)) add([i](World& n) { n.leaveTogether(n.players[i]); });
  if (p.is != Player::kMeets && p.is != Player::kComputes) return;
  // It finds a peer gone before the coordinator says so, or cannot reach it.
  for (const int m : p.with) {
    const std::pair<int, int> link = std::minmax(m, seat);
    const bool apart = link == limits_.apart && p.is == Player::kMeets && w.beside(p, m);
    if (apart || w.gone(p, m)) add([i, m, apart](World& n) { n.pause(i, m, !apart); });
  }
}

// Of the ghost with this number. It ends at some time, as the coordinator demands.
template <class Move>
void Explorer::ghostMoves(const World& w, size_t i, const Move& move) const {
  const auto chance = [&](const auto& change) { move([&](World& n) { change(n, n.ghosts[i]); }, true); };
  const test::Ghost& g = w.ghosts[i];
  const Player& p = g.player;
  move([i](World& n) { n.ghosts.erase(n.ghosts.begin() + static_cast<ptrdiff_t>(i)); }, true);
  if (!g.down.empty()) chance([](World& n, test::Ghost& it) { n.listen(it.player, it.down); });
  if (p.works() && p.leaves) chance([](World&, test::Ghost& it) { it.player.is = Player::kWaits; });
  if (p.is == Player::kMeets && w.canMeet(p, g.seat, limits_.apart))
    chance([](World&, test::Ghost& it) { World::meet(it.player); });
  if (p.is == Player::kComputes && p.iteration < kSteps && w.canSum(p))
    chance([](World& n, test::Ghost& it) { n.doStep(it.player); });
  if (w.atBorder(p)) chance([](World& n, const test::Ghost& it) { n.leaveTogether(it.player); });
  for (const int m : p.with)
    if (p.works() && w.gone(p, m)) chance([](World&, test::Ghost& it) { it.player.is = Player::kWaits; });
}

std::vector<Explorer::Next> Explorer::successors(const World& w) const {
  std::vector<Next> all;
  if (w.end != World::kGoesOn) return all;
  const auto move = [&](const auto& change, bool byChance) {
    all.push_back({w, byChance});
    change(all.back().world);
  };
  const auto add = [&](const auto& change) { move(change, false); };
  for (size_t i = 0; i < w.players.size(); ++i) {
    const bool there = w.players[i].is != Player::kNobody;
    if (!w.up[i].empty()) add([i](World& n) { n.hear(i), n.coordinate(); });
    if (!w.down[i].empty() && there) add([i](World& n) { n.listen(n.players[i], n.down[i]); });
    ownMoves(w, i, add);
    if (there && w.kills < limits_.kills)
      move([i](World& n) { ++n.kills, n.kill(i), n.up[i].push_back({Message::kLost}); }, true);
    if (!there && w.spawns < limits_.spawns && w.up[i].empty() &&
        w.membership.seat(static_cast<int>(i)) == Membership::Seat::kEmpty)
      move([i](World& n) { ++n.spawns, n.spawn(i); }, true);
    if (!there || !w.watches(i) || w.ghostsMade >= limits_.ghosts) continue;
    move([i](World& n) { n.giveUp(i, false), n.coordinate(); }, true);
    if (w.spawns < limits_.spawns) move([i](World& n) { n.giveUp(i, true), n.coordinate(); }, true);
  }
  for (size_t i = 0; i < w.ghosts.size(); ++i) ghostMoves(w, i, move);
  if (w.divisions < limits_.divisions && w.membership.phase() == Membership::Phase::kRunning)
    move([](World& n) { ++n.divisions, n.membership.divideAnew(), n.coordinate(); }, true);
  if (!w.waited && (w.membership.phase() == Membership::Phase::kGathering || w.membership.awaitsReplacement()))
    add([](World& n) { n.waited = true, n.coordinate(); });
  return all;
}

void explore(const Membership::Rules& rules, const Limits& limits) {
  SCOPED_TRACE(testing::Message() << rules.seats << " seats, least " << rules.least << ", " << name(rules.replacement)
                                  << ", shares move " << rules.sharesMove << ", " << limits.kills << " losses, apart "
                                  << limits.apart.first << " and " << limits.apart.second << ", " << limits.divisions
                                  << " changes of shares, " << limits.ghosts << " ghosts");
  Explorer e(rules, limits);
  const size_t states = e.run();
  std::printf("%d seats, %s: %zu states\n", rules.seats, name(rules.replacement), states);
  EXPECT_TRUE(e.ends().count(World::kOver));
  if (limits.kills + limits.ghosts >= rules.seats || rules.replacement == Replacement::kFail || !rules.sharesMove) {
    EXPECT_TRUE(e.ends().count(World::kTooFew)) << "all may be lost";
  }
}

TEST(MembershipExplorer, TwoMembersLosesAndReplacements) {
  for (const Replacement r : {Replacement::kGoOn, Replacement::kWait, Replacement::kFail})
    for (const bool move : {true, false}) explore({2, 0, r, move}, {2, 2});
}

TEST(MembershipExplorer, TwoMembersOfWhichOneIsEnough) { explore({2, 1, Replacement::kGoOn, true}, {2, 1}); }

TEST(MembershipExplorer, TwoMembersThatCannotReachEachOther) {
  for (const Replacement r : {Replacement::kGoOn, Replacement::kWait}) explore({2, 0, r, true}, {1, 1, {0, 1}});
}

TEST(MembershipExplorer, TwoMembersWhoseSharesChange) {
  for (const Replacement r : {Replacement::kGoOn, Replacement::kWait, Replacement::kFail})
    for (const bool move : {true, false}) explore({2, 0, r, move}, {2, 1, {-1, -1}, 2});
  explore({2, 0, Replacement::kGoOn, true}, {1, 0, {0, 1}, 1});
}

TEST(MembershipExplorer, ThreeMembersWhoseSharesChange) {
  explore({3, 0, Replacement::kGoOn, true}, {1, 0, {-1, -1}, 1});
}

// One or two of them begin, and the others join at any moment or never.
TEST(MembershipExplorer, RunsThatGrow) {
  for (const Replacement r : {Replacement::kGoOn, Replacement::kWait}) {
    explore({2, 0, r, true, 1}, {2, 1});
    for (const int first : {1, 2}) explore({3, 0, r, true, first}, {1, 0});
  }
  explore({2, 0, Replacement::kGoOn, true, 1}, {1, 0, {0, 1}});
  explore({2, 0, Replacement::kFail, true, 1}, {1, 0});
}

TEST(MembershipExplorer, RunsThatGrowAndWhoseSharesChange) {
  for (const Replacement r : {Replacement::kGoOn, Replacement::kWait}) explore({2, 0, r, true, 1}, {2, 1, {-1, -1}, 2});
  explore({3, 0, Replacement::kGoOn, true, 2}, {1, 0, {-1, -1}, 1});
}

// Those that were silent for too long and go on, and those whose task was started anew before their connection had ended.
TEST(MembershipExplorer, MembersThatAreGivenUpAndLive) {
  for (const Replacement r : {Replacement::kGoOn, Replacement::kWait, Replacement::kFail})
    for (const bool move : {true, false}) explore({2, 0, r, move}, {0, 1, {-1, -1}, 0, 1});
  explore({2, 0, Replacement::kGoOn, true}, {0, 1, {-1, -1}, 1, 1});
  explore({2, 0, Replacement::kGoOn, true, 1}, {1, 1, {-1, -1}, 0, 1});
  explore({2, 1, Replacement::kGoOn, true}, {0, 1, {-1, -1}, 0, 2});
  explore({3, 0, Replacement::kGoOn, true}, {0, 1, {-1, -1}, 0, 1});
}

TEST(MembershipExplorer, ThreeMembersALossAndAReplacement) {
  for (const Replacement r : {Replacement::kGoOn, Replacement::kWait}) explore({3, 0, r, true}, {1, 1});
}

TEST(MembershipExplorer, ThreeMembersAndTwoLosses) { explore({3, 0, Replacement::kGoOn, true}, {2, 0}); }

TEST(MembershipExplorer, ThreeMembersTwoOfWhichCannotReachEachOther) {
  explore({3, 0, Replacement::kGoOn, true}, {0, 0, {0, 2}});
}

}  // namespace
}  // namespace crema::cluster
