#include "host/progress_line.h"

#include <fmt/core.h>

#include "base/deadline.h"
#include "base/log.h"

namespace crema::host {

void showProgress(const wire::Event::Progress& p) {
  static double last = 0;
  if (!stderrIsTerminal() || (monotonicSeconds() - last < 0.1 && p.iteration() + 1 < p.max_iter())) return;
  last = monotonicSeconds();
  const auto left = static_cast<int64_t>(p.seconds_left() + 0.5);
  std::string line =
      fmt::format("iteration {}/{}  loss {:.4f}  lr {:.4g}  {:.0f} records/s  {}:{:02} left", p.iteration() + 1,
                  p.max_iter(), p.loss(), p.lr(), p.records_per_second(), left / 60, left % 60);
  if (p.slowest_worker() >= 0) line += fmt::format("  slowest: worker {}", p.slowest_worker());
  setStatusLine(line);
}

void endProgress() { setStatusLine(""); }

}  // namespace crema::host
