#include "worker/training.h"

#include <algorithm>

#include "base/error.h"
#include "collective/tree.h"

namespace crema::worker {

using cluster::Member;

Training::Training(int ranks, int workers, std::string modelHome, bool rowsStay)
    : ranks_(ranks),
      workers_(workers),
      rowsStay_(rowsStay),
      ranges_(std::make_shared<std::vector<collective::RankRange>>()),
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

std::string Training::remedyForMissing() const { return "run fewer workers (the model is the same)"; }

std::string Training::remedyForLoss() const {
  return "run it again, from the last snapshot if there is one (-snapshot X.solverstate; on Spark with -weights "
         "X.caffemodel beside it)";
}

void Training::checkStart(const cluster::Roster& roster) const {
  const Member& first = roster.members[0];
  for (size_t w = 1; w < roster.members.size(); ++w) {
    const Member& other = roster.members[w];
    if (other.records.empty() && other.digest.empty()) continue;  // it is not here: the run begins without it
    const std::string name = roster.describe(static_cast<int>(w));
    if (other.records != first.records)
      badData("{} reads other records than {}: {} against {}; copy the same database to all machines", name,
              roster.describe(0), other.records, first.records);
    if (other.digest != first.digest)
      badData("{} starts from other weights than {}; give all workers the same -weights or -snapshot", name,
              roster.describe(0));
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

std::vector<int> Training::shares(const cluster::Roster& roster, const std::vector<int>& members) {
  if (records_.empty()) records_ = roster.members[static_cast<size_t>(members[0])].records;
  std::vector<int> ends;
  std::fill(ranges_->begin(), ranges_->end(), collective::RankRange{0, 0});
  for (int i = 0; i < static_cast<int>(members.size()); ++i) {
    const auto r = collective::ranksOfWorker(i, static_cast<int>(members.size()), ranks_);
    (*ranges_)[static_cast<size_t>(members[static_cast<size_t>(i)])] = r;
    ends.push_back(r.hi);
  }
  return ends;
}

std::string Training::refusal(const cluster::Roster& roster, int newcomer) const {
  const std::string& records = roster.members[static_cast<size_t>(newcomer)].records;
  if (records == records_) return "";
  return fmt::format("{} reads other records than the run does: {} against {}; copy the same database to all machines",
                     roster.describe(newcomer), records, records_);
}

void Training::complete(const cluster::Roster& roster, wire::Event& report) const {
  if (!report.has_progress() || workers_ == 1) return;
  const auto byTime = [](const Member& a, const Member& b) {
    return a.beat.compute_seconds() < b.beat.compute_seconds();
  };
  const auto [least, most] = std::minmax_element(roster.members.begin(), roster.members.end(), byTime);
  if (most->beat.compute_seconds() > 1.2 * least->beat.compute_seconds())
    report.mutable_progress()->set_slowest_worker(static_cast<int>(most - roster.members.begin()));
}

bool Training::take(const control::ToCoordinator::Piece& piece, const std::string& sender) {
  return model_.take(piece, sender);
}

}  // namespace crema::worker
