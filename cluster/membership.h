// Who belongs to a run, as a state machine without sockets and clocks: what the coordinator hears goes in, what it has to
// say comes out. membership_explorer_test.cc walks through all orders of messages and losses of small runs.
//
// A run has seats, one a member. It goes through generations: in each of them its members compute together; when one is
// lost or one more is there, or their shares are to change, all stop (regroup) between two steps and begin the next generation:
//
//   gathering ── enough are ready ─────► running ── lost, in trouble, newcomer, other shares ──► regrouping
//                                           ▲                                                       │
//                                           └── all that are left have paused, and the replacement is here or given up
//
// A generation begins only when every member of the one before has said that it has left it, or is lost. A lost one that
// still computes may complete one more step, of pieces that were on their way to it before the others closed their
// connections; that does no harm, as a step has the same bits whoever completes it, and so has what is written of it.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace crema::cluster {

// What a run does about a lost member.
enum class Replacement {
  kGoOn,  // the others go on at once with its share; a replacement joins when it is there
  kWait,  // they wait for a replacement for some time, and go on without it then
  kFail,  // the run ends
};
const char* name(Replacement r);                        // "continue", "wait", "fail"
Replacement replacementNamed(const std::string& name);  // throws kInvalid, naming the choices

// Whom a member cannot reach. ended: all that it knows is that a connection has ended, as it does where the other one has
// left the generation first.
struct Unreached {
  std::vector<int> members = {};
  bool ended = false;
};

class Membership {
 public:
  struct Rules {
    int seats = 1;
    int least =
        0;  // members with which the run goes on, and begins when the others do not come; 0: it begins with all, goes on with one
    Replacement replacement = Replacement::kFail;
    bool sharesMove = true;  // others can take over the share of a lost member; else each seat must be taken
    int first = 0;           // where shares move: the run begins as soon as so many are ready, and others join; 0: all
  };
  enum class Seat { kEmpty, kJoined, kReady, kRunning, kPaused, kFinished, kGone };  // kGone: it has finished, and left
  enum class Phase { kGathering, kRunning, kRegrouping };
  static constexpr int64_t kNewcomer = -1;

  explicit Membership(const Rules& rules);

  // What has been heard of a member.
  void joined(int seat);
  void ready(int seat);
  void failed(int seat);  // by an error of its own; left() comes next
  void left(int seat);    // its connection has ended, or it is given up
  // false: it does not compute in a generation, or has been asked to leave it at once, and computes again.
  bool finished(int seat);
  // It has left this generation between two steps, with the state before step `iteration`, as it was asked to, or
  // because it cannot reach others. false: late, of a generation that is over.
  bool paused(int seat, uint32_t generation, int64_t iteration, const Unreached& others = {});
  // The present members are to go on with other shares, behind a step. Nothing where no generation runs, or shares do not move.
  void divideAnew();

  // What is to be said now; each is said once.
  enum class Say {
    kNothing,
    kRegroup,  // to all of members(): leave generation() - 1 at once
    kBorder,   // the same, behind the step that they all agree on
    kStart,    // to all of members(): begin generation()
    kGiveUp,   // seat evicted() is lost: it and others cannot reach each other, three times in a row without a step
    kTooFew,   // the run cannot go on
    kOver,     // all that are left have finished, the first one of them too
  };
  // waited: the time for replacements is over. While gathering: those that are ready may begin without the others.
  Say next(bool waited);

  // Whether the run goes on without it, whatever happens to it: it was never a member of a generation, and the run has begun
  // without it, or may: as many as it begins with are ready, or have joined where nobody has failed. So where all fail for
  // one reason, the last error ends the run; who has not come does not count, or that would wait for the join timeout.
  bool spares(int seat) const;

  Phase phase() const { return phase_; }
  uint32_t generation() const { return generation_; }
  const std::vector<int>& members() const { return members_; }  // seats of this generation, or of the one that ends
  bool nobody() const { return count(Seat::kEmpty) + count(Seat::kGone) == static_cast<int>(seats_.size()); }
  Seat seat(int i) const { return seats_[static_cast<size_t>(i)].is; }
  int64_t iteration(int i) const { return seats_[static_cast<size_t>(i)].iteration; }  // kNewcomer: has no state yet
  int evicted() const { return evicted_; }
  std::string text() const;        // all of its state, for tests
  bool awaitsReplacement() const;  // all that are left have paused, and next(true) would say something

 private:
  struct Place {
    Seat is = Seat::kEmpty;
    int64_t iteration = kNewcomer;
    std::vector<int> unreached = {};  // of this regrouping
  };
  int count(Seat is) const;
  bool among(int seat) const;
  bool shouldRegroup() const;
  bool over() const;
  Say whenRunning();
  Say whenRegrouping(bool waited);
  Say start(bool waited);
  bool inTrouble(int64_t furthest);
  void evict();
  void askAtOnce();

  // With how many the next generation begins at once: as many as the one before had, where one is waited for.
  int wanted() const {
    if (!rules_.sharesMove) return rules_.seats;
    if (phase_ != Phase::kGathering) return static_cast<int>(members_.size());
    return rules_.first > 0 ? rules_.first : rules_.seats;
  }
  int least() const {  // with how many it may begin
    return phase_ == Phase::kGathering ? (rules_.least > 0 ? rules_.least : wanted()) : std::max(rules_.least, 1);
  }

  Rules rules_;
  Phase phase_ = Phase::kGathering;
  uint32_t generation_ = 0;
  std::vector<Place> seats_;
  std::vector<bool> failed_;  // by seat: a member of it has failed
  std::vector<int> members_;
  bool lost_ = false;       // a member that had not finished has left since the generation began
  bool divides_ = false;    // divideAnew() has been called since the generation began
  bool atOnce_ = false;     // the members have been asked to leave at once; else behind a step
  bool judged_ = false;     // inTrouble() has counted this regrouping
  int troubles_ = 0;        // regroupings in a row with neither a loss nor a step
  int64_t troubleAt_ = -1;  // iteration of the last one
  std::vector<int> links_;  // by seat: how often a link to or from it was reported not to work, in these
  int evicted_ = -1;
};

}  // namespace crema::cluster
