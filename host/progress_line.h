// One live line on a terminal: `iteration 420/2000  loss 0.1234  lr 0.0097  18342 records/s  0:05 left`.
#pragma once
#include "wire.pb.h"

namespace crema::host {

// Shows progress events; other events leave the line alone. Nothing happens where stderr is a file: the log lines are
// there.
void showProgress(const wire::Event::Progress& p);
void endProgress();

}  // namespace crema::host
