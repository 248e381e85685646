// A small run for membership_explorer_test.cc: members as automata, a channel in each direction for each of them, and the
// coordinator's Membership. A member is of one generation at a time; in it, it first meets the others and takes over the
// state of one that is ahead, where it is behind, and then computes. Each of these may fail in between.
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

struct World {
  Membership membership;
  std::vector<Player> players;
  std::vector<std::deque<Message>> up, down;  // to the coordinator, to the member
  std::map<int, uint32_t> done;               // in which generation a step was done last
  int kills = 0, spawns = 0, divisions = 0;
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
  const Player& player(int m) const { return players[static_cast<size_t>(m)]; }
  // The other member is in the generation of player i, and has not left it.
  bool beside(size_t i, int m) const { return player(m).works() && player(m).generation == players[i].generation; }
  // The other one has left the generation of player i, or is lost; not: it has not heard of it yet.
  bool gone(size_t i, int m) const {
    const Player& p = player(m);
    if (p.is != Player::kWaits) return p.is == Player::kNobody || p.generation > players[i].generation;
    const auto& coming = down[static_cast<size_t>(m)];
    return std::none_of(coming.begin(), coming.end(), [&](const Message& c) {
      return c.what == Message::kStart && c.generation == players[i].generation;
    });
  }
  void pause(size_t i, int unreached, bool ended) {
    Player& p = players[i];
    up[i].push_back({Message::kPaused, p.generation, p.state ? p.iteration : -1, unreached, ended});
    p.is = Player::kWaits, p.leaves = p.pauses = false;
  }

  std::string key() const;
  void coordinate();
  void hear(size_t i);
  void listen(size_t i);
  bool canMeet(size_t i, std::pair<int, int> apart) const;
  void meet(size_t i);
  bool canSum(size_t i) const;
  void doStep(size_t i);
  bool atBorder(size_t i) const;
};

inline std::string World::key() const {
  const auto list = [](const std::vector<int>& v) {
    std::string s;
    for (const int i : v) s += std::to_string(i);
    return s;
  };
  std::string s = membership.text() + "|" + std::to_string(kills) + std::to_string(spawns) + std::to_string(divisions) +
                  std::to_string(waited) + std::to_string(end) + "|";
  for (const auto& p : players)
    s += std::to_string(p.is) + "," + std::to_string(p.generation) + "," + std::to_string(p.iteration) +
         std::to_string(p.state) + std::to_string(p.leaves) + std::to_string(p.pauses) + list(p.with) + "," +
         list(p.at) + ";";
  for (const auto* channels : {&up, &down})
    for (const auto& c : *channels) {
      for (const auto& m : c)
        s += std::to_string(m.what) + "." + std::to_string(m.generation) + "." + std::to_string(m.iteration) +
             std::to_string(m.unreached) + std::to_string(m.ended) + list(m.with) + "," + list(m.at) + " ";
      s += "/";
    }
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
      for (const int m : start.with) down[static_cast<size_t>(m)].push_back(start);
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

inline void World::listen(size_t i) {
  Player& p = players[i];
  const Message m = down[i].front();
  down[i].pop_front();
  if (m.what != Message::kStart) {
    if (m.generation > p.generation) (m.what == Message::kRegroup ? p.leaves : p.pauses) = true;
    return;
  }
  EXPECT_EQ(p.is, Player::kWaits) << key();
  EXPECT_GT(m.generation, p.generation) << key();
  p = {Player::kMeets, m.generation, p.iteration, p.state || m.generation == 1, false, false, m.with, m.at};
}

// apart: two members that cannot reach each other. Who is behind needs one that is ahead.
inline bool World::canMeet(size_t i, std::pair<int, int> apart) const {
  const Player& me = players[i];
  for (size_t k = 0; k < me.with.size(); ++k) {
    const int m = me.with[k];
    const std::pair<int, int> link = std::minmax(m, static_cast<int>(i));
    if (!beside(i, m) || link == apart) return false;
  }
  return true;
}

inline void World::meet(size_t i) {
  Player& p = players[i];
  p.is = Player::kComputes, p.state = true;
  p.iteration = std::max(0, *std::max_element(p.at.begin(), p.at.end()));
}

// A sum is complete when all members of the generation take part in it. One that has done so may be alone in having the
// result: the others lose it with a peer.
inline bool World::canSum(size_t i) const {
  const Player& me = players[i];
  for (const int m : me.with) {
    const Player& p = player(m);
    if (!beside(i, m) || p.is == Player::kMeets) return false;
    if (p.iteration != me.iteration && p.iteration != me.iteration + 1) return false;
  }
  return true;
}

inline void World::doStep(size_t i) {
  Player& p = players[i];
  const auto [known, first] = done.try_emplace(p.iteration, p.generation);
  // In an earlier generation it may have been completed by members that are lost since.
  if (!first) {
    EXPECT_GE(p.generation, known->second) << "a step of an old generation: " << key();
  }
  known->second = p.generation;
  ++p.iteration;
}

// The border that all agree on: the request travels with the sum, so that all see it behind the same step.
inline bool World::atBorder(size_t i) const {
  const Player& p = players[i];
  return p.is == Player::kComputes && p.pauses && p.iteration > begunAt &&
         std::all_of(p.with.begin(), p.with.end(), [&](int m) {
           return beside(i, m) && player(m).is == Player::kComputes && player(m).iteration == p.iteration;
         });
}

}  // namespace crema::cluster::test
