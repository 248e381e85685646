// A small run for membership_explorer_test.cc: members as automata, a channel in each direction for each of them, and the
// coordinator's Membership. A member is of one generation at a time; in it, it first meets the others and takes over the
// state of one that is ahead, where it is behind, and then computes. Each of these may fail in between. A ghost is a process
// that the coordinator has given up although it lives, as one that was silent for too long: it hears what was sent to it
// before, computes with whoever still does, and is not heard any more.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cluster/membership.h"

namespace crema::cluster::test {

constexpr int kSteps = 2;  // of the run

struct Player {
  enum Is { kNobody, kWaits, kMeets, kComputes, kFinished } is = kNobody;
  uint32_t generation = 0;
  int iteration = 0;
  bool state = false;                   // it has one; a newcomer has none
  bool leaves = false, pauses = false;  // asked to leave at once; behind a step
  std::vector<int> with, at;            // members of its generation, and the steps that their states are for
  bool works() const { return is == kMeets || is == kComputes || is == kFinished; }
};

struct Message {
  enum What { kJoined, kReady, kPaused, kFinished, kLost, kRegroup, kBorder, kStart } what;
  uint32_t generation = 0;
  int iteration = 0, unreached = -1;
  bool ended = false;
  std::vector<int> with = {}, at = {};  // of kStart
};

struct Ghost {
  int seat;
  Player player;
  std::deque<Message> down;
};

struct World {
  Membership membership;
  std::vector<Player> players;
  std::vector<Ghost> ghosts;
  std::vector<std::deque<Message>> up, down;  // to the coordinator, to the member
  std::map<int, uint32_t> done;               // in which generation a step was done last
  int kills = 0, spawns = 0, divisions = 0, ghostsMade = 0;
  int begunAt = 0;  // the step with which the last generation began
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
  void kill(size_t i) {
    players[i] = {};
    down[i].clear();
  }
  // Its place is empty from now on. again: the next attempt of its task is there in the same moment.
  void giveUp(size_t i, bool again) {
    ghosts.push_back({static_cast<int>(i), players[i], down[i]});
    ++ghostsMade;
    kill(i), up[i].clear();
    membership.left(static_cast<int>(i));
    if (again) ++spawns, spawn(i), hear(i);
  }
  // The coordinator waits for signs of its life.
  bool watches(size_t i) const {
    const Membership::Seat is = membership.seat(static_cast<int>(i));
    return is != Membership::Seat::kEmpty && is != Membership::Seat::kFinished && is != Membership::Seat::kGone;
  }
  const Player& player(int m) const { return players[static_cast<size_t>(m)]; }
  // The process of seat m that is in the generation of `me`, and has not left it; null: none.
  const Player* beside(const Player& me, int m) const {
    const auto is = [&](const Player& p) { return p.works() && p.generation == me.generation; };
    for (const Ghost& g : ghosts)
      if (g.seat == m && is(g.player)) return &g.player;
    return is(player(m)) ? &player(m) : nullptr;
  }
  // All processes of seat m have left the generation of `me`, or are lost; not: one has not heard of it yet.
  bool gone(const Player& me, int m) const {
    const auto comes = [&](const std::deque<Message>& channel) {
      return std::any_of(channel.begin(), channel.end(),
                         [&](const Message& c) { return c.what == Message::kStart && c.generation == me.generation; });
    };
    return !beside(me, m) && !comes(down[static_cast<size_t>(m)]) &&
           std::none_of(ghosts.begin(), ghosts.end(), [&](const Ghost& g) { return g.seat == m && comes(g.down); });
  }
  void pause(size_t i, int unreached, bool ended) {
    Player& p = players[i];
    up[i].push_back({Message::kPaused, p.generation, p.state ? p.iteration : -1, unreached, ended});
    p.is = Player::kWaits, p.leaves = p.pauses = false;
  }

  std::string key() const;
  void coordinate();
  void hear(size_t i);
  void listen(Player& p, std::deque<Message>& from) const;
  bool canMeet(const Player& me, int seat, std::pair<int, int> apart) const;
  static void meet(Player& p);
  bool canSum(const Player& me) const;
  void doStep(Player& p);
  bool atBorder(const Player& me) const;
  void leaveTogether(const Player& me);
};

inline std::string World::key() const {
  const auto list = [](const std::vector<int>& v) {
    std::string s;
    for (const int i : v) s += std::to_string(i);
    return s;
  };
  const auto process = [&](const Player& p) {
    return std::to_string(p.is) + "," + std::to_string(p.generation) + "," + std::to_string(p.iteration) +
           std::to_string(p.state) + std::to_string(p.leaves) + std::to_string(p.pauses) + list(p.with) + "," +
           list(p.at) + ";";
  };
  const auto channel = [&](const std::deque<Message>& c) {
    std::string s;
    for (const auto& m : c)
      s += std::to_string(m.what) + "." + std::to_string(m.generation) + "." + std::to_string(m.iteration) +
           std::to_string(m.unreached) + std::to_string(m.ended) + list(m.with) + "," + list(m.at) + " ";
    return s + "/";
  };
  std::string s = membership.text() + "|";
  for (const int n : {kills, spawns, divisions, ghostsMade, int{waited}, int{end}}) s += std::to_string(n);
  s += "|";
  for (const Player& p : players) s += process(p);
  for (const Ghost& g : ghosts) s += "+" + std::to_string(g.seat) + process(g.player) + channel(g.down);
  for (const auto* channels : {&up, &down})
    for (const auto& c : *channels) s += channel(c);
  return s;
}

// The coordinator says all that it has to say.
inline void World::coordinate() {
  while (end == kGoesOn) {
    const Membership::Say say = membership.next(waited);
    if (say == Membership::Say::kNothing) {
      // The coordinator's own rule: who has not come within the join timeout ends the run.
      if (waited && membership.phase() == Membership::Phase::kGathering) end = kTooFew;
      return;
    }
    if (say == Membership::Say::kOver) end = kOver;
    if (say == Membership::Say::kTooFew) end = kTooFew;
    if (say == Membership::Say::kGiveUp) {
      const auto i = static_cast<size_t>(membership.evicted());
      kill(i), up[i].clear();
      membership.left(membership.evicted());
    }
    if (say == Membership::Say::kRegroup || say == Membership::Say::kBorder) {
      waited = false;
      const auto what = say == Membership::Say::kRegroup ? Message::kRegroup : Message::kBorder;
      for (const int m : membership.members())
        if (player(m).is != Player::kNobody) down[static_cast<size_t>(m)].push_back({what, membership.generation()});
    }
    if (say == Membership::Say::kStart) {
      Message start{Message::kStart, membership.generation()};
      start.with = membership.members();
      for (const int m : start.with) start.at.push_back(static_cast<int>(membership.iteration(m)));
      const int furthest = std::max(0, *std::max_element(start.at.begin(), start.at.end()));
      EXPECT_GE(furthest, begunAt - 1) << "more than a step is done anew: " << key();
      begunAt = furthest;
      for (const int m : start.with)
        if (player(m).is != Player::kNobody) down[static_cast<size_t>(m)].push_back(start);
    }
  }
}

inline void World::hear(size_t i) {
  const Message m = up[i].front();
  up[i].pop_front();
  const int seat = static_cast<int>(i);
  switch (m.what) {
    case Message::kJoined:
      return membership.joined(seat);
    case Message::kReady:
      return membership.ready(seat);
    case Message::kPaused:
      membership.paused(seat, m.generation, m.iteration,
                        {m.unreached < 0 ? std::vector<int>() : std::vector<int>{m.unreached}, m.ended});
      return;
    case Message::kFinished:
      membership.finished(seat);
      return;
    default:
      return membership.left(seat);
  }
}

inline void World::listen(Player& p, std::deque<Message>& from) const {
  const Message m = from.front();
  from.pop_front();
  if (m.what != Message::kStart) {
    if (m.generation > p.generation) (m.what == Message::kRegroup ? p.leaves : p.pauses) = true;
    return;
  }
  EXPECT_EQ(p.is, Player::kWaits) << key();
  EXPECT_GT(m.generation, p.generation) << key();
  p = {Player::kMeets, m.generation, p.iteration, p.state || m.generation == 1, false, false, m.with, m.at};
}

// apart: two members that cannot reach each other. Who is behind needs one that is ahead.
inline bool World::canMeet(const Player& me, int seat, std::pair<int, int> apart) const {
  return std::all_of(me.with.begin(), me.with.end(), [&](int m) {
    const std::pair<int, int> link = std::minmax(m, seat);
    return beside(me, m) && link != apart;
  });
}

inline void World::meet(Player& p) {
  p.is = Player::kComputes, p.state = true;
  p.iteration = std::max(0, *std::max_element(p.at.begin(), p.at.end()));
}

// A sum is complete when all members of the generation take part in it. One that has done so may be alone in having the
// result: the others lose it with a peer.
inline bool World::canSum(const Player& me) const {
  return std::all_of(me.with.begin(), me.with.end(), [&](int m) {
    const Player* p = beside(me, m);
    return p && p->is != Player::kMeets && (p->iteration == me.iteration || p->iteration == me.iteration + 1);
  });
}

inline void World::doStep(Player& p) {
  const auto [known, first] = done.try_emplace(p.iteration, p.generation);
  // In an earlier generation it may have been completed by members that are lost since.
  if (!first) {
    EXPECT_GE(p.generation, known->second) << "a step of an old generation: " << key();
  }
  known->second = p.generation;
  ++p.iteration;
}

// The border that all agree on: the request travels with the sum, so that all see it behind the same step.
inline bool World::atBorder(const Player& me) const {
  return me.is == Player::kComputes && me.pauses && me.iteration > begunAt &&
         std::all_of(me.with.begin(), me.with.end(), [&](int m) {
           const Player* p = beside(me, m);
           return p && p->is == Player::kComputes && p->iteration == me.iteration;
         });
}

inline void World::leaveTogether(const Player& me) {
  const uint32_t generation = me.generation;
  for (Ghost& g : ghosts)
    if (g.player.works() && g.player.generation == generation) g.player.is = Player::kWaits;
  for (size_t i = 0; i < players.size(); ++i)
    if (players[i].works() && players[i].generation == generation) pause(i, -1, false);
}

}  // namespace crema::cluster::test
