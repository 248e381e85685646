#include "host/progress_line.h"

#include <fmt/core.h>

#include "base/deadline.h"
#include "base/log.h"

namespace crema::host {

void showProgress(const train::Progress& p, int slowestWorker) {
  static double last = 0;
  if (!stderrIsTerminal() || (monotonicSeconds() - last < 0.1 && p.iteration + 1 < p.maxIter)) return;
  last = monotonicSeconds();
  std::string line = fmt::format("iteration {}/{}  loss {:.4f}  lr {:.4g}  {:.0f} records/s", p.iteration + 1,
                                 p.maxIter, p.loss, p.rate, p.recordsPerSecond);
  const auto left = static_cast<int64_t>(p.secondsLeft + 0.5);
  if (p.secondsLeft >= 0) line += fmt::format("  {}:{:02} left", left / 60, left % 60);
  const auto addShare = [&](const char* of, double share) {
    if (share >= 0.01) line += fmt::format("  {} {:.0f} %", of, 100 * share);
  };
  addShare("feed", p.shares.feed), addShare("compute", p.shares.compute);
  addShare("exchange", p.shares.exchange), addShare("wait", p.shares.wait);
  if (slowestWorker >= 0) line += fmt::format("  slowest: worker {}", slowestWorker);
  setStatusLine(line);
}

void endProgress() { setStatusLine(""); }

}  // namespace crema::host
