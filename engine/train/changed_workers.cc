// How a run goes on with other workers: what a worker takes over from another, and what all of them hold for each other.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "train/trainer.h"

namespace crema::train {
namespace {

// Of carried_: no pass has left anything (Layer::saveCarried() begins with the step, -1 here).
constexpr char kNothing = '\xff';

}  // namespace

void Trainer::leaveExchange() {
  exchangedBefore_ = waits();
  step_.reset();
}

void Trainer::changeWorkers(collective::Exchange* exchange, collective::RankRange mine, int workers) {
  leaveExchange();
  exchange_ = exchange;
  options_.myRanks = mine;
  step_.emplace(solver_, exchange, mine, options_.ranks);
  solver_.assign(collective::rankList(mine), workers);
  solver_.setLog(logs());
  // What was agreed with others, and may not have been done by who is gone.
  requested_ = withoutPause(requested_ | agreed_);
  stopped_ = paused_ = false;
  restoreCarried();
}

// A state of mine stays whole until the other one is here: who sends it may be lost on the way, and then mine is perhaps the
// furthest that is left. A newcomer has none, and needs no second copy.
void Trainer::catchUp(int from, const std::function<bool(int)>& behind) {
  const bool mine = behind(exchange_->worker()), keeps = mine && begun_;
  std::vector<double> position = solver_.position();
  const auto iteration = static_cast<int64_t>(position[0]);
  std::vector<char> carried = carried_;
  carried.resize(solver_.net().carriedBytes() * static_cast<size_t>(options_.ranks), kNothing);
  int64_t granted = granted_;
  int part = 0;
  const auto take = [&](void* at, size_t bytes) {
    std::vector<collective::Bytes> of(static_cast<size_t>(exchange_->workers()));
    of[static_cast<size_t>(from)] = {static_cast<char*>(at), bytes};
    const collective::WaitingScope waiting(*exchange_);
    exchange_->copy(of, behind, collective::Tag::catchingUp(0, part++));
  };
  const std::vector<Blob*> blobs{&solver_.net().flatData(), &solver_.history()};
  std::vector<std::vector<float>> taken;
  for (Blob* b : blobs) {
    taken.emplace_back(keeps ? static_cast<size_t>(b->count()) : 0);
    take(keeps ? taken.back().data() : b->mutableData<float>(), static_cast<size_t>(b->count()) * sizeof(float));
  }
  take(carried.data(), carried.size());
  std::vector<float> sum = sum_;
  if (solver_.param().snapshot_diff()) {
    sum.resize(static_cast<size_t>(solver_.net().flatData().count()));
    take(sum.data(), sum.size() * sizeof(float));
  }
  take(position.data(), position.size() * sizeof(double));
  take(&granted, sizeof granted);
  if (!mine) return;
  for (size_t i = 0; i < blobs.size(); ++i) std::copy(taken[i].begin(), taken[i].end(), blobs[i]->mutableData<float>());
  carried_ = std::move(carried), sum_ = std::move(sum), granted_ = granted;
  solver_.setPosition(position);
  begun_ = true;
  if (solver_.iteration() != iteration)
    LOG_INFO("Going on from iteration {}, as other workers do", solver_.iteration());
  restoreCarried();
}

// snapshot_diff: the sum over all ranks, for any number of processes. Apart from the net's own, as a step that is dropped leaves
// those of another pass there.
void Trainer::keepSum(const float* gradient) {
  sum_.resize(static_cast<size_t>(solver_.net().flatData().count()));
  for (const auto& l : solver_.net().learnables())
    if (!l.keptPerPass) std::copy_n(gradient + l.offset, l.blob->count(), sum_.begin() + l.offset);
}

// Statistics have no gradient; theirs are zero.
void Trainer::showSum() {
  if (solver_.param().snapshot_diff() && !sum_.empty())
    std::copy(sum_.begin(), sum_.end(), solver_.net().flatDiff().mutableDiff<float>());
}

// The worker that should have taken a snapshot behind the last step may be gone.
void Trainer::repeatBorder() {
  const int every = solver_.param().snapshot();
  const bool due = every > 0 && solver_.iteration() > 0 && solver_.iteration() % every == 0;
  snapshotTaken_ = (due || wantsSnapshot(withoutCounted(agreed_))) && !stopped_;  // which are granted behind steps
  if (snapshotTaken_ && snapshotAt_ != solver_.iteration()) takeSnapshot();
  if (snapshotTaken_) requested_ = withoutSnapshot(requested_);  // else the next step would take another one
}

// Before the update: a step is done everywhere, or its update is taken over with what belongs to it.
void Trainer::shareCarried() {
  const size_t each = solver_.net().carriedBytes();
  if (each == 0) return;
  std::vector<char> now(each * static_cast<size_t>(options_.ranks), kNothing);
  for (int r = options_.myRanks.lo; r < options_.myRanks.hi; ++r)
    solver_.net().saveCarried(r, now.data() + each * static_cast<size_t>(r));
  if (exchange_) {
    std::vector<collective::Bytes> of;
    for (const collective::RankRange share : exchange_->shares())
      of.push_back(
          {now.data() + each * static_cast<size_t>(share.lo), each * static_cast<size_t>(share.hi - share.lo)});
    const collective::WaitingScope waiting(*exchange_);
    exchange_->copy(
        of, [](int) { return true; }, collective::Tag::carried(solver_.iteration()));
  }
  carried_ = std::move(now);
}

void Trainer::restoreCarried() {
  const size_t each = solver_.net().carriedBytes();
  if (each == 0) return;
  carried_.resize(each * static_cast<size_t>(options_.ranks), kNothing);
  for (int r = options_.myRanks.lo; r < options_.myRanks.hi; ++r)
    solver_.net().restoreCarried(r, carried_.data() + each * static_cast<size_t>(r));
}

}  // namespace crema::train
