#include "cluster/roster.h"

#include <algorithm>

#include "base/error.h"
#include "collective/tree.h"

namespace crema::cluster {

Roster::Roster(int ranks, int workers) : ranks_(ranks) {
  collective::ranksOfWorker(0, workers, ranks);  // throws kInvalid for wrong numbers
  members.resize(static_cast<size_t>(workers));
}

std::string Roster::refusal(const control::ToCoordinator::Hello& hello, const std::string& jobDigest) const {
  const auto w = static_cast<size_t>(hello.worker());
  if (hello.version() != CREMA_VERSION)
    return fmt::format("version {} cannot join version {}; use one executable everywhere", hello.version(),
                       CREMA_VERSION);
  if (hello.worker() < 0 || w >= members.size())
    return fmt::format("there is no worker {}; this run has workers 0 to {}", hello.worker(), members.size() - 1);
  if (members[w].channel || members[w].finished)
    return fmt::format("worker {} is already here (host {}, pid {})", w, members[w].hello.host(),
                       members[w].hello.pid());
  if (hello.job_digest() != jobDigest)
    return fmt::format(
        "worker {} has a different job than the coordinator: start all with the same solver, net, ranks and workers",
        w);
  return "";
}

int Roster::count(bool Member::*flag) const {
  int n = 0;
  for (const auto& m : members) n += m.*flag;
  return n;
}

std::string Roster::describe(int w) const {
  const collective::RankRange r = collective::ranksOfWorker(w, static_cast<int>(members.size()), ranks_);
  const Member& m = members[static_cast<size_t>(w)];
  const std::string ranks =
      r.hi - r.lo == 1 ? fmt::format("rank {}", r.lo) : fmt::format("ranks {} to {}", r.lo, r.hi - 1);
  return fmt::format("worker {} ({}, host {}, pid {})", w, ranks, m.hello.host(), m.hello.pid());
}

std::string Roster::missing() const {
  std::string list;
  for (size_t w = 0; w < members.size(); ++w)
    if (!members[w].ready)
      list +=
          fmt::format("{}worker {}{}", list.empty() ? "" : ", ", w, members[w].channel ? " (joined, not ready)" : "");
  return list;
}

bool Roster::late(double since) const {
  return std::any_of(members.begin(), members.end(), [&](const Member& m) { return !m.ready && m.prepared < since; });
}

int Roster::find(const std::shared_ptr<Channel>& channel) const {
  for (size_t w = 0; w < members.size(); ++w)
    if (members[w].channel == channel) return static_cast<int>(w);
  return -1;
}

int64_t Roster::latestBeat() const {
  int64_t step = 0;
  for (const auto& m : members) step = std::max(step, m.beat.iteration());
  return step;
}

void Roster::compare() const {
  for (size_t w = 1; w < members.size(); ++w) {
    if (members[w].records != members[0].records)
      throw Error(ErrorKind::kData,
                  fmt::format("{} reads other records than {}: {} against {}; copy the same database to all machines",
                              describe(static_cast<int>(w)), describe(0), members[w].records, members[0].records));
    if (members[w].digest != members[0].digest)
      throw Error(ErrorKind::kData,
                  fmt::format("{} starts from other weights than {}; give all workers the same -weights or -snapshot",
                              describe(static_cast<int>(w)), describe(0)));
  }
}

}  // namespace crema::cluster
