// The process behind `crema score`: rows in, rows out, no other process involved. Every record of [first, last) exactly
// once, in order, the last batch short.
#pragma once

namespace crema::host {

// One Job on stdin, Rows and at last Done or Failed on stdout (proto/wire.proto). Ends the process, or throws the error
// that it sent as Failed.
int serveScores();

}  // namespace crema::host
