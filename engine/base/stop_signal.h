// SIGINT and SIGTERM for commands that have something half made to take away before they end by them.
#pragma once

namespace crema {

void awaitStopSignals();                    // from here on they wait for checkStopSignal()
void checkStopSignal();                     // kStopped when one has come
int stopSignal();                           // which one has come; 0: none
[[noreturn]] void endBySignal(int number);  // as if it had never been caught: a shell's loop ends too

}  // namespace crema
