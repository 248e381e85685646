#include "worker/training.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "collective/tree.h"
#include "worker/job.h"

namespace crema::worker {

using cluster::Member;

Training::Training(int ranks, int workers, std::string modelHome, bool rowsStay, double rebalance)
    : ranks_(ranks),
      workers_(workers),
      rowsStay_(rowsStay),
      ranges_(std::make_shared<std::vector<collective::RankRange>>()),
      balance_(ranks, rebalance),
      model_(std::move(modelHome)) {
  collective::ranksOfWorker(0, workers, ranks);  // throws kInvalid for wrong numbers
  for (int w = 0; w < workers; ++w) ranges_->push_back(collective::ranksOfWorker(w, workers, ranks));
}

cluster::Naming Training::naming() const {
  return {"worker", "solver, net, ranks and workers", [ranges = ranges_](int w, const control::ToCoordinator::Hello&) {
            const collective::RankRange r = (*ranges)[static_cast<size_t>(w)];
            return r.hi == r.lo       ? "no ranks yet"
                   : r.hi - r.lo == 1 ? fmt::format("rank {}", r.lo)
                                      : fmt::format("ranks {} to {}", r.lo, r.hi - 1);
          }};
}

std::string Training::remedyForMissing() const {
  return "run fewer workers (the model is the same), or wait longer (-join_timeout; on Spark spark.crema.joinTimeout)";
}

std::string Training::remedyForLoss() const {
  return "run it again with -resume auto, which goes on from the last snapshot if there is one";
}

void Training::checkStart(const cluster::Roster& roster) const {
  const Member* first = nullptr;
  std::string firstName;
  for (size_t w = 0; w < roster.members.size(); ++w) {
    const Member& other = roster.members[w];
    if (other.records.empty() && other.digest.empty()) continue;  // it is not here: the run begins without it
    const std::string name = roster.describe(static_cast<int>(w));
    if (!first) first = &other, firstName = name;
    if (other.records != first->records)
      badData("{} reads other records than {}: {} against {}; copy the same database to all machines", name, firstName,
              other.records, first->records);
    if (other.digest != first->digest)
      badData("{} starts from other weights than {}; give all workers the same -weights or -snapshot", name, firstName);
  }
}

void Training::checkEnd(const cluster::Roster& roster) const {
  int first = -1;
  for (int w = 0; w < static_cast<int>(roster.members.size()); ++w) {
    const Member& m = roster.members[static_cast<size_t>(w)];
    if (!m.finished) continue;
    if (first < 0) first = w;
    if (m.digest != roster.members[static_cast<size_t>(first)].digest)
      throw Error(
          ErrorKind::kInternal,
          fmt::format(
              "{} ended with another state than {}; the model must not be trusted. Please report this with the logs",
              roster.describe(w), roster.describe(first)));
  }
}

cluster::Work::Division Training::begin(const cluster::Roster& roster, const std::vector<int>& members) {
  if (records_.empty()) records_ = roster.members[static_cast<size_t>(members[0])].records;
  before_.clear();
  for (const int m : members) before_[m] = roster.members[static_cast<size_t>(m)].beat.compute_seconds();
  members_ = members;
  balance_.begin(members, spentBy(roster));
  std::fill(ranges_->begin(), ranges_->end(), collective::RankRange{0, 0});
  const std::vector<int> ends = endsOf(balance_.shares());
  for (size_t i = 0; i < members.size(); ++i)
    (*ranges_)[static_cast<size_t>(members[i])] = {ends[i] - balance_.shares()[i], ends[i]};
  return {ends, balance_.text()};
}

bool Training::wantsOtherShares(const cluster::Roster& roster, double now) {
  return !rowsStay_ && balance_.wantsOthers(spentBy(roster), now);
}

std::vector<Spent> Training::spentBy(const cluster::Roster& roster) const {
  std::vector<Spent> spent;
  for (const int m : members_) spent.push_back(spentOf(roster.members[static_cast<size_t>(m)].beat.spent()));
  return spent;
}

std::string Training::refusal(const cluster::Roster& roster, int newcomer) const {
  const std::string& records = roster.members[static_cast<size_t>(newcomer)].records;
  if (records == records_) return "";
  return fmt::format("{} reads other records than the run does: {} against {}; copy the same database to all machines",
                     roster.describe(newcomer), records, records_);
}

void Training::complete(const cluster::Roster& roster, wire::Event& report) const {
  if (!report.has_progress() || before_.size() < 2) return;
  std::vector<std::pair<double, int>> seconds;
  for (const auto& [m, before] : before_)
    seconds.emplace_back(roster.members[static_cast<size_t>(m)].beat.compute_seconds() - before, m);
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  if (most->first > 1.2 * least->first) report.mutable_progress()->set_slowest_worker(most->second);
}

bool Training::take(const control::ToCoordinator::Piece& piece, const std::string& sender) {
  return model_.take(piece, sender);
}

}  // namespace crema::worker
