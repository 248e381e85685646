// The end of a run: the last message to all members, and what they still say before they close their connections.
#pragma once
#include <functional>

#include "cluster/doorman.h"
#include "cluster/roster.h"

namespace crema::cluster {

// How long part() waits: in all, and for a member since its last message.
struct Parting {
  double seconds, silence;
};
// Says the last message, and waits for members to close their connections: closing from here could discard it before it is
// read. Those that are silent, as one whose silence ends the run, may be stopped for ever. Reports of theirs go to `forward`.
void part(Roster& roster, Doorman& doorman, const control::ToMember& last, const Parting& waits,
          const std::function<void(const wire::Event&)>& forward);
// Where the run ends with a loss: a moment for other members, which lose the same peer: the step that they report, or the
// last heartbeat's. What else they say is not handled.
int64_t presentStep(const Roster& roster, Doorman& doorman, const std::function<void(const wire::Event&)>& forward);

}  // namespace crema::cluster
