#include "cluster/parting.h"

#include <algorithm>

#include "cluster/patience.h"

namespace crema::cluster {

void part(Roster& roster, Doorman& doorman, const control::ToMember& last, const Parting& waits,
          const std::function<void(const wire::Event&)>& forward) {
  roster.tellAll(last);
  const Deadline deadline = Deadline::after(waits.seconds);
  while (!deadline.passed()) {
    auto in = doorman.next(Deadline::after(0), nullptr);  // what has come is heard before anyone counts as silent
    if (!in) {
      if (!roster.hears(monotonicSeconds() - waits.silence)) return;
      in = doorman.next(Deadline::earlier(deadline, Deadline::after(patience::kParting)), nullptr);
      if (!in) continue;
    }
    if (in->message.has_hello()) sendTo(*in->from, last);
    const int w = roster.find(in->from);
    if (w < 0 || !roster.members[static_cast<size_t>(w)].watched()) continue;
    Member& m = roster.members[static_cast<size_t>(w)];
    m.heard = monotonicSeconds();
    if (!in->lost.empty()) m.channel.reset();
    try {
      // What a member reported before it heard of the end, such as a snapshot that is published. The host may be gone.
      if (in->message.has_report()) forward(in->message.report());
    } catch (const Error&) {
      // the error that ends the run is the better one
    }
  }
}

int64_t presentStep(const Roster& roster, Doorman& doorman, const std::function<void(const wire::Event&)>& forward) {
  int64_t step = roster.latestStep();
  const Deadline moment = Deadline::after(patience::kLostStep);
  while (auto in = doorman.next(moment, nullptr)) {
    if (in->call) in->call();
    if (!roster.watches(in->from)) continue;
    if (in->message.has_report()) forward(in->message.report());
    if (in->message.has_failed()) return std::max(step, in->message.failed().iteration());
    if (in->message.has_paused()) return std::max(step, in->message.paused().iteration());
  }
  return step;
}

}  // namespace crema::cluster
