// One process's part of a run: from what was asked to a solver that is ready to train.
#pragma once
#include <memory>
#include <string>

#include "train/trainer.h"

namespace crema::train {

struct RunOptions {
  caffe::SolverParameter solver;  // prepared: nets inlined, seed set (solver/descriptions.h)
  std::string netOrigin;          // the file the nets came from, for messages
  std::string folder;             // relative paths of the nets may start here
  int ranks = 1, worker = 0, workers = 1;
  int threads = 0;                // 0: all the cores this process may use
  std::string isa;                // "", or the name of an instruction set
  std::string snapshot, weights;  // resume from, finetune from; at most one, but that weights replace the state's
  std::string snapshotName, weightsName;        // what messages call them; empty: as they are
  std::string snapshotPrefix, publishedPrefix;  // as TrainOptions has them
  layers::DataSource trainSource, testSource;
  bool resize = false;  // as DataOptions has it
  bool log = true;      // Caffe's lines
};

// invalid() names the flag: ranks, workers and threads that make sense on this machine.
void checkRun(int ranks, int workers, int worker, int threads);

struct Run {
  std::unique_ptr<kernels::Context> kernels;
  std::unique_ptr<solver::Solver> solver;
  TrainOptions train;
};
// Builds the nets, and takes up the snapshot or the weights. Throws what is wrong with any of it, and kIo where a
// snapshot could not be written.
Run setUp(const RunOptions& options);

}  // namespace crema::train
