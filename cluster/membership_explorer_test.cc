// Walks through every order of messages and losses of small runs: members as automata, a channel in each direction for each
// of them, and the coordinator's Membership. In every state that can be reached:
//   - a step is done by all members of one generation together, and never by members of two;
//   - whoever has a later state than the others has got it by such a step, so that no step is done twice with another
//     result;
//   - where no message is on its way and nobody can compute, the run has ended, or waits for a replacement with a deadline;
//   - the run ends, with all its steps done or for want of members, in every continuation that is fair.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/membership.h"

namespace crema::cluster {
namespace {

constexpr int kSteps = 2;  // of the run

// What a member has heard and does.
struct Player {
  enum Is { kNobody, kWaits, kComputes, kFinished } is = kNobody;
  uint32_t generation = 0;
  int iteration = 0;
  bool leaves = false, pauses = false;  // asked to leave at once; behind a step
  std::vector<int> with;                // members of its generation
  auto operator<=>(const Player&) const = default;
};

struct Message {
  enum What { kJoined, kReady, kPaused, kFinished, kLost, kRegroup, kBorder, kStart } what;
  uint32_t generation = 0;
  int iteration = 0, blamed = -1;
  std::vector<int> with;
  int state = 0;  // of kStart: the iteration that all take up
  auto operator<=>(const Message&) const = default;
};

struct World {
  Membership membership;
  std::vector<Player> players;
  std::vector<std::deque<Message>> up, down;                  // to the coordinator, to the member
  std::map<int, std::pair<uint32_t, std::vector<int>>> done;  // who has done a step last, and in which generation
  int kills = 0, spawns = 0;
  bool waited = false;
  enum End { kGoesOn, kOver, kTooFew } end = kGoesOn;

  explicit World(const Membership::Rules& rules)
      : membership(rules), players(static_cast<size_t>(rules.seats)), up(players.size()), down(players.size()) {
    for (size_t i = 0; i < players.size(); ++i) spawn(i);
  }
  void spawn(size_t i) {
    players[i] = {Player::kWaits};
    up[i].push_back({Message::kJoined});
    up[i].push_back({Message::kReady});
    down[i].clear();
  }
  std::string key() const;
};

class Explorer {
 public:
  Explorer(const Membership::Rules& rules, int kills, int spawns) : rules_(rules), kills_(kills), spawns_(spawns) {}
  // Visits all states; returns how many.
  size_t run() {
    std::vector<World> todo{World(rules_)};
    seen_.insert(todo[0].key());
    while (!todo.empty() && !testing::Test::HasFailure()) {
      const World world = std::move(todo.back());
      todo.pop_back();
      size_t moves = 0;
      for (World& next : successors(world, &moves))
        if (seen_.insert(next.key()).second) todo.push_back(std::move(next));
      if (moves == 0 && world.end == World::kGoesOn) ADD_FAILURE() << "nothing can happen any more: " << world.key();
      ends_.insert(world.end);
    }
    return seen_.size();
  }
  const std::set<World::End>& ends() const { return ends_; }

 private:
  std::vector<World> successors(const World& w, size_t* moves);
  void coordinate(World& w);
  void hear(World& w, size_t i);
  void tell(World& w, size_t i);
  static bool canSum(const World& w, size_t i);
  void doStep(World& w, size_t i);

  Membership::Rules rules_;
  int kills_, spawns_;
  std::set<std::string> seen_;
  std::set<World::End> ends_;
};

std::string text(const std::vector<int>& v) {
  std::string s;
  for (const int i : v) s += std::to_string(i);
  return s;
}

std::string World::key() const {
  std::string s = membership.text() + "|" + std::to_string(kills) + std::to_string(spawns) + std::to_string(waited) +
                  std::to_string(end) + "|";
  for (const auto& p : players)
    s += std::to_string(p.is) + "," + std::to_string(p.generation) + "," + std::to_string(p.iteration) +
         std::to_string(p.leaves) + std::to_string(p.pauses) + text(p.with) + ";";
  for (const auto* channels : {&up, &down})
    for (const auto& c : *channels) {
      for (const auto& m : c)
        s += std::to_string(m.what) + "." + std::to_string(m.generation) + "." + std::to_string(m.iteration) +
             std::to_string(m.blamed) + text(m.with) + std::to_string(m.state) + " ";
      s += "/";
    }
  return s;
}

// The coordinator says all that it has to say.
void Explorer::coordinate(World& w) {
  while (w.end == World::kGoesOn) {
    const Membership::Say say = w.membership.next(w.waited);
    if (say == Membership::Say::kNothing) {
      // The coordinator's own rule: who has not come within the join timeout ends the run.
      if (w.waited && w.membership.phase() == Membership::Phase::kGathering) w.end = World::kTooFew;
      return;
    }
    if (say == Membership::Say::kOver) w.end = World::kOver;
    if (say == Membership::Say::kTooFew) w.end = World::kTooFew;
    if (say == Membership::Say::kGiveUp) {
      const auto i = static_cast<size_t>(w.membership.evicted());
      w.players[i] = {}, w.up[i].clear(), w.down[i].clear();
      w.membership.left(w.membership.evicted());
    }
    if (say == Membership::Say::kRegroup || say == Membership::Say::kBorder) {
      w.waited = false;
      const auto what = say == Membership::Say::kRegroup ? Message::kRegroup : Message::kBorder;
      for (const int m : w.membership.members())
        if (w.players[static_cast<size_t>(m)].is != Player::kNobody)
          w.down[static_cast<size_t>(m)].push_back({what, w.membership.generation()});
    }
    if (say == Membership::Say::kStart) {
      int64_t state = 0;
      for (const int m : w.membership.members()) state = std::max(state, w.membership.iteration(m));
      for (const int m : w.membership.members())
        w.down[static_cast<size_t>(m)].push_back(
            {Message::kStart, w.membership.generation(), 0, -1, w.membership.members(), static_cast<int>(state)});
    }
  }
}

void Explorer::hear(World& w, size_t i) {
  const Message m = w.up[i].front();
  w.up[i].pop_front();
  const int seat = static_cast<int>(i);
  switch (m.what) {
    case Message::kJoined:
      return w.membership.joined(seat);
    case Message::kReady:
      return w.membership.ready(seat);
    case Message::kPaused:
      return w.membership.paused(seat, m.generation, m.iteration, m.blamed);
    case Message::kFinished:
      return w.membership.finished(seat);
    default:
      return w.membership.left(seat);
  }
}

void Explorer::tell(World& w, size_t i) {
  Player& p = w.players[i];
  const Message m = w.down[i].front();
  w.down[i].pop_front();
  if (m.what == Message::kStart) {
    EXPECT_EQ(p.is, Player::kWaits) << w.key();
    EXPECT_GT(m.generation, p.generation) << w.key();
    p = {Player::kComputes, m.generation, m.state, false, false, m.with};
    return;
  }
  if (m.generation <= p.generation) return;
  (m.what == Message::kRegroup ? p.leaves : p.pauses) = true;
}

// A sum is complete when all members of the generation take part in it. One that has done so may be alone in having the
// result: the others lose it with a peer.
bool Explorer::canSum(const World& w, size_t i) {
  const Player& me = w.players[i];
  for (const int m : me.with) {
    const Player& p = w.players[static_cast<size_t>(m)];
    if (p.is == Player::kNobody || p.generation != me.generation) return false;
    const bool here = p.is == Player::kComputes && p.iteration == me.iteration;
    const bool ahead = (p.is == Player::kComputes || p.is == Player::kFinished) && p.iteration == me.iteration + 1;
    if (!here && !ahead) return false;
  }
  return true;
}

void Explorer::doStep(World& w, size_t i) {
  Player& p = w.players[i];
  const auto [known, first] = w.done.try_emplace(p.iteration, p.generation, p.with);
  // In an earlier generation it may have been completed by members that are lost since.
  if (!first) {
    EXPECT_GE(p.generation, known->second.first) << "a step of an old generation: " << w.key();
  }
  known->second = {p.generation, p.with};
  ++p.iteration;
}

std::vector<World> Explorer::successors(const World& w, size_t* moves) {
  std::vector<World> all;
  if (w.end != World::kGoesOn) return all;
  const auto move = [&](const auto& change) {
    all.push_back(w);
    change(all.back());
    ++*moves;
  };
  for (size_t i = 0; i < w.players.size(); ++i) {
    const Player& p = w.players[i];
    if (!w.up[i].empty()) move([&](World& n) { hear(n, i), coordinate(n); });
    if (!w.down[i].empty() && p.is != Player::kNobody) move([&](World& n) { tell(n, i); });
    const bool works = p.is == Player::kComputes || p.is == Player::kFinished;
    const auto pause = [&](World& n, int blamed) {
      n.up[i].push_back({Message::kPaused, p.generation, p.iteration, blamed});
      n.players[i].is = Player::kWaits, n.players[i].leaves = n.players[i].pauses = false;
    };
    if (works && p.leaves) move([&](World& n) { pause(n, -1); });
    if (p.is == Player::kComputes && p.iteration < kSteps && canSum(w, i)) move([&](World& n) { doStep(n, i); });
    if (p.is == Player::kComputes && p.iteration == kSteps)
      move([&](World& n) {
        n.players[i].is = Player::kFinished;
        n.up[i].push_back({Message::kFinished});
      });
    // The border that all agree on: the request travels with the sum, so that all see it behind the same step.
    const bool agreed =
        p.is == Player::kComputes && std::all_of(p.with.begin(), p.with.end(), [&](int m) {
          const Player& o = w.players[static_cast<size_t>(m)];
          return (o.is == Player::kComputes && o.iteration == p.iteration && o.generation == p.generation);
        });
    if (agreed && p.pauses)
      move([&](World& n) {
        for (const int m : p.with) {
          Player& o = n.players[static_cast<size_t>(m)];
          n.up[static_cast<size_t>(m)].push_back({Message::kPaused, o.generation, o.iteration, -1});
          o.is = Player::kWaits, o.pauses = o.leaves = false;
        }
      });
    // It finds a peer gone before the coordinator says so.
    if (p.is == Player::kComputes && !p.leaves)
      for (const int m : p.with)
        if (w.players[static_cast<size_t>(m)].is == Player::kNobody ||
            w.players[static_cast<size_t>(m)].generation != p.generation ||
            w.players[static_cast<size_t>(m)].is == Player::kWaits) {
          move([&](World& n) { pause(n, m); });
          break;
        }
    if (p.is != Player::kNobody && w.kills < kills_)
      move([&](World& n) {
        ++n.kills;
        n.players[i] = {};
        n.down[i].clear();
        n.up[i].push_back({Message::kLost});
      });
    if (p.is == Player::kNobody && w.spawns < spawns_ && w.up[i].empty() &&
        w.membership.seat(static_cast<int>(i)) == Membership::Seat::kEmpty)
      move([&](World& n) { ++n.spawns, n.spawn(i); });
  }
  if (!w.waited && (w.membership.phase() == Membership::Phase::kGathering || w.membership.awaitsReplacement()))
    move([&](World& n) { n.waited = true, coordinate(n); });
  return all;
}

void explore(int seats, Replacement replacement, bool sharesMove, int kills, int spawns) {
  SCOPED_TRACE(testing::Message() << seats << " seats, " << name(replacement) << ", shares move " << sharesMove);
  Explorer e({seats, 0, replacement, sharesMove}, kills, spawns);
  const size_t states = e.run();
  std::printf("%d seats, %s, shares %s: %zu states\n", seats, name(replacement), sharesMove ? "move" : "stay", states);
  EXPECT_TRUE(e.ends().count(World::kOver));
  if (kills >= seats || replacement == Replacement::kFail || !sharesMove) {
    EXPECT_TRUE(e.ends().count(World::kTooFew)) << "all may be lost";
  }
}

TEST(MembershipExplorer, TwoMembersLosesAndReplacements) {
  for (const Replacement r : {Replacement::kGoOn, Replacement::kWait, Replacement::kFail})
    for (const bool move : {true, false}) explore(2, r, move, 2, 2);
}

TEST(MembershipExplorer, ThreeMembersAndALoss) {
  for (const Replacement r : {Replacement::kGoOn, Replacement::kWait}) explore(3, r, true, 1, 0);
}

}  // namespace
}  // namespace crema::cluster
