// What the members of a run do together, as far as the coordinator must know it: how messages name them, what must be
// equal, and the messages that only this work has. Joining, heartbeats, failures and the end are the coordinator's own.
// Caffe's training is worker/training.h.
#pragma once
#include <fmt/core.h>

#include <optional>
#include <string>
#include <vector>

#include "cluster/roster.h"
#include "control.pb.h"
#include "wire.pb.h"

namespace crema::cluster {

class Work {
 public:
  virtual ~Work() = default;
  virtual Naming naming() const = 0;
  // What to do about members that are missing, beside more executors: "run fewer workers (...), or ...".
  virtual std::string remedyForMissing() const = 0;
  virtual std::string remedyForLoss() const = 0;  // where to go on after a member is lost
  // Of a run that goes on without lost members: whether others can take over the share of one. A generation of these
  // members begins: the ends of their shares, in order, and why they are not equal, for people.
  virtual bool sharesMove() const { return false; }
  struct Division {
    std::vector<int> ends = {};
    std::string why = {};
  };
  virtual Division begin(const Roster& /*roster*/, const std::vector<int>& /*members*/) { return {}; }
  // Whether the present members should go on with other shares, behind a step. Asked again and again, at these seconds.
  virtual bool wantsOtherShares(const Roster& /*roster*/, double /*now*/) { return false; }
  // Why a member that comes later cannot join those that are there; "" when it can.
  virtual std::string refusal(const Roster& /*roster*/, int /*newcomer*/) const { return ""; }
  // Throw unless the members, which are all ready, may start together, or have ended in one state.
  virtual void checkStart(const Roster& roster) const = 0;
  virtual void checkEnd(const Roster& roster) const = 0;
  // Adds to a member's report what only the coordinator knows.
  virtual void complete(const Roster& roster, wire::Event& report) const = 0;
  // The next piece of a file for the coordinator's disk; true when it is there. Throws what ends the run. In a thread of
  // its own, which no other function of this object may share anything with, and which it may outlive.
  [[nodiscard]] virtual bool take(const control::ToCoordinator::Piece& piece, const std::string& sender) = 0;
  // Why the run ends when take() has not returned for so many seconds.
  virtual std::string storyOfDisk(double seconds) const {
    return fmt::format("a file could not be written for {:.0f} s; does its file system answer?", seconds);
  }
  // Whether the run is over. asked: the host has asked for the end; done: all members have finished.
  virtual bool over(const Roster& /*roster*/, bool /*asked*/, bool done) const { return done; }
  // What all members are informed of, once, when the host has asked for the end: as soon as this gives something.
  virtual std::optional<wire::Note> lastCall(const Roster& /*roster*/) const { return std::nullopt; }
};

}  // namespace crema::cluster
