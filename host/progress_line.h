// One live line on a terminal: `iteration 420/2000  loss 0.1234  lr 0.0097  18342 records/s  0:05 left  feed 12 %  exchange
// 3 %`: the last two where waiting for batches, or the sum over workers, takes a hundredth of the time or more.
#pragma once
#include "train/trainer.h"

namespace crema::host {

// Does nothing where stderr is a file, which gets log lines. slowestWorker: -1 for none.
void showProgress(const train::Progress& p, int slowestWorker = -1);
void endProgress();

}  // namespace crema::host
