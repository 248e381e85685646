// One process's part of a run: from options to a solver that is ready to train.
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
  int threads = 0;  // 0: all the cores this process may use
  std::string isa;  // "", or the name of an instruction set
  // To resume from; to finetune from. With both, weights replace the model that the state names.
  std::string snapshot, weights;
  bool foundSnapshot = false;             // `snapshot` is the newest that was found: one of another job is refused
  bool drawnSeed = false;                 // the solver as written has no seed: that of a snapshot counts
  std::string snapshotName, weightsName;  // their names in messages; empty: the paths
  std::string snapshotPrefix, publishedPrefix;  // as TrainOptions has them
  layers::DataSource trainSource, testSource;
  bool resize = false, compareAll = false;  // as DataOptions has them
  bool log = true;                          // Caffe's lines
};

// Throws kInvalid, naming the flag, for impossible ranks, workers or threads.
void checkRun(int ranks, int workers, int worker, int threads);

struct Run {
  std::unique_ptr<kernels::Context> kernels;
  std::unique_ptr<solver::Solver> solver;
  TrainOptions train;
};
// Builds the nets and reads the snapshot or the weights. Throws their errors, kInvalid for a found snapshot of another
// job, and kIo where no snapshot could be written.
Run setUp(RunOptions options);

// Saves the final model as `path`; its name, with .h5 for HDF5. "" and a warning where training was stopped before max_iter: a
// half-trained net takes no model's place.
std::string saveFinalModel(const solver::Solver& solver, const std::string& path);

}  // namespace crema::train
