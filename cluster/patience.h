// How long coordinator and members wait for what: seconds, all in one place. What the user sets (-join_timeout,
// -step_timeout) is in the Job; multiples of it are here.
#pragma once

namespace crema::cluster::patience {

// Both sides: a side that sends nothing else sends a heartbeat this often.
constexpr double kBeat = 1;

// Coordinator, while the run goes on.
constexpr double kTurn = 0.5;         // for messages, before members are checked and heartbeats go out
constexpr double kFresh = 2;          // since its last heartbeat, a member counts as computing if that says so
constexpr double kMessages = 0.5;     // for handling what has come, as a model comes in many messages
constexpr double kSend = 5;           // until a member has room for a message
constexpr double kPreparing = 5;      // between two reports to the host of how many members have their rows
constexpr int kFailures = 2;          // of a member's machine (kIo) that the run survives
constexpr double kFailuresIn = 3600;  // if they come within this time
constexpr double kPromise = 30;       // for a process in reserve to take the place that it was given
constexpr double kHangTimeouts = 10;  // step timeouts without a finished batch: the member hangs

// Coordinator, at the end of a run.
constexpr double kLostStep = 0.3;     // for other members, which lose the same peer and report their step
constexpr double kCause = 1;          // for the message or lost connection of a peer that a member reports as lost
constexpr double kGoodbye = 5;        // for members to close their connections after Bye
constexpr double kAbort = 2;          // the same after Abort
constexpr double kParting = 0.1;      // between two looks at who of them is silent
constexpr double kHostTimeouts = 10;  // step timeouts, for the host to read what it has not read yet
constexpr double kLate = 600;         // for members that come behind it, as long as the host is there

// Member, of its coordinator.
constexpr double kGone = 1;         // until a refused connection to one that listened before is an error
constexpr double kLook = 0.2;       // between two looks at the interrupt while it waits for a message
constexpr double kFailed = 5;       // until there is room for the message that it has failed
constexpr double kItsError = 1;     // for the coordinator's error after an own one
constexpr double kPeersError = 5;   // the same after a lost or late peer, whose own error takes longer
constexpr double kProgress = 0.25;  // between two reports of progress
constexpr double kEndsAlone = 1;    // from SIGTERM while it waits for others, for them to come
// And inside a generation since anything has moved: one that computes says so in its next heartbeat, and the coordinator in
// its own (2 * kBeat + kTurn).
constexpr double kStill = 3;

// Member, in step timeouts: the coordinator judges who is late; these end what nobody else would end.
constexpr double kMeshTimeouts = 12;         // an exchange with other members, while no byte moves and nobody computes
constexpr double kPublicationTimeouts = 10;  // a snapshot that the host publishes

}  // namespace crema::cluster::patience
