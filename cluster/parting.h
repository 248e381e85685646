// The end of a run: the last message to all members, and what they still say before they close their connections.
#pragma once
#include <functional>

#include "cluster/doorman.h"
#include "cluster/roster.h"

namespace crema::cluster {

// Says the last message, and waits for members to close their connections, `seconds` at most: closing from here could
// discard it before it is read. Reports of theirs go to `forward`.
void part(const Roster& roster, Doorman& doorman, const control::ToMember& last, double seconds,
          const std::function<void(const wire::Event&)>& forward);
// Where the run ends with a loss: a moment for other members, which lose the same peer: the step that they report, or the
// last heartbeat's. What else they say is not handled.
int64_t presentStep(const Roster& roster, Doorman& doorman, const std::function<void(const wire::Event&)>& forward);

}  // namespace crema::cluster
