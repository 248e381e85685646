#include "worker/training.h"

#include <algorithm>

#include "base/error.h"
#include "collective/tree.h"

namespace crema::worker {

using cluster::Member;

Training::Training(int ranks, int workers, std::string modelHome)
    : ranks_(ranks), workers_(workers), model_(std::move(modelHome)) {
  collective::ranksOfWorker(0, workers, ranks);  // throws kInvalid for wrong numbers
}

cluster::Naming Training::naming() const {
  return {"worker", "solver, net, ranks and workers",
          [ranks = ranks_, workers = workers_](int w, const control::ToCoordinator::Hello&) {
            const collective::RankRange r = collective::ranksOfWorker(w, workers, ranks);
            return r.hi - r.lo == 1 ? fmt::format("rank {}", r.lo) : fmt::format("ranks {} to {}", r.lo, r.hi - 1);
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
  for (size_t w = 1; w < roster.members.size(); ++w)
    if (roster.members[w].digest != roster.members[0].digest)
      throw Error(
          ErrorKind::kInternal,
          fmt::format(
              "{} ended with another state than {}; the model must not be trusted. Please report this with the logs",
              roster.describe(static_cast<int>(w)), roster.describe(0)));
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
