// One live line on a terminal: `iteration 420/2000  loss 0.1234  lr 0.0097  18342 records/s  0:05 left`.
#pragma once
#include "train/trainer.h"

namespace crema::host {

// Nothing happens where stderr is a file: the log lines are there. slowestWorker: -1 where there is none to name.
void showProgress(const train::Progress& p, int slowestWorker = -1);
void endProgress();

}  // namespace crema::host
