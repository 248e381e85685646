// The members of a run as the coordinator knows them: who has joined, at which step, with which data and state.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/channel.h"
#include "control.pb.h"

namespace crema::cluster {

struct Member {
  // One that stays hears all that is said, and its connection must not end; others only reserve a place.
  bool watched() const { return channel && !hello.brief(); }

  std::shared_ptr<Channel> channel;
  control::ToCoordinator::Hello hello;
  control::ToCoordinator::Beat beat;
  bool ready = false, finished = false;
  // Times in seconds: its last message; the last progress of its computing thread, waiting for others included; the last
  // Preparing of its host.
  double heard = 0, moved = 0, prepared = -1e9;
  int64_t taken = -1;           // the last snapshot that it took, as it said when it left a generation
  std::string digest, records;  // digest: SHA-256 of its state; records: counts and fingerprints of its data
};

// How messages name members ("worker"), what they must agree on ("solver and net") and, for one of them, its part
// ("ranks 4 to 5").
struct Naming {
  std::string member, job;
  std::function<std::string(int member, const control::ToCoordinator::Hello& hello)> part;
  bool steps = true;  // they all do the same steps, so that messages say in which one something happened
  // What messages call a member that has said hello; empty: its place, as of members that know their own.
  std::function<int(int member, const control::ToCoordinator::Hello& hello)> number = {};
  // Whether two that say hello, and know no place of their own, are attempts of one member; empty: never.
  std::function<bool(const control::ToCoordinator::Hello& a, const control::ToCoordinator::Hello& b)> same = {};
};

// What cannot be sent within patience::kSend is dropped: the end of that connection, or its silence, is reported with a
// better message.
void sendTo(Channel& channel, const control::ToMember& message);

class Roster {
 public:
  Roster(int count, Naming naming) : members(static_cast<size_t>(count)), naming_(std::move(naming)) {}
  const std::string& member() const { return naming_.member; }
  // The number of who says hello: its own, that of another attempt of it which is there, or the first that nobody has;
  // past the end when there is none.
  size_t place(const control::ToCoordinator::Hello& hello) const;
  // Why who says hello can be none of this run's members; "" when it can, unless its place is taken: see occupied().
  std::string refusal(const control::ToCoordinator::Hello& hello, const std::string& jobDigest) const;
  std::string occupied(size_t place) const;
  int count(bool Member::*flag) const;
  std::string describe(int member) const;  // "worker 2 (ranks 4 to 5, host a 10.0.0.3, pid 77)"
  std::string during(int64_t step) const;  // " in step 7"
  std::string missing() const;             // the members that are not ready, as a list
  Error tooFew(size_t wanted, double waited, const std::string& remedy) const;  // kTimeout, after that many seconds
  bool late(double since) const;  // one is not ready, and no rows were prepared for it since that time
  int find(const std::shared_ptr<Channel>& channel) const;        // -1: none
  void tell(int member, const control::ToMember& message) const;  // if it is there
  std::string list(const std::vector<int>& members) const;        // "workers 0, 2 and 3"
  bool watches(const std::shared_ptr<Channel>& channel) const;
  bool hears(double since) const;  // a connection of one that stays is open, and something has come since then
  void tellAll(const control::ToMember& message) const;
  control::ToMember here(bool complete,
                         bool brief) const;  // what those that are here say about themselves; brief: nothing
  // The largest step of any heartbeat or report of progress. Members that exchange gradients are never more than one step
  // apart, but a heartbeat may be a second old, progress a quarter of one.
  int64_t latestStep() const;

  std::vector<Member> members;
  int64_t shown = 0;  // the last step that was reported as progress

 private:
  int number(size_t member) const;

  Naming naming_;
};

}  // namespace crema::cluster
