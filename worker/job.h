// Conversions: a Job into the engine's options, and the engine's results into Events.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cluster/coordinator.h"
#include "train/run.h"
#include "wire.pb.h"
#include "worker/host_rows.h"

namespace crema::worker {

// What a user says about the workers of a run, in the words of wire.Job; seconds.
struct ClusterSettings {
  double joinTimeout = 60, stepTimeout = 60, replacementTimeout = 60;
  std::string replacement = "continue";
  int leastWorkers = 0, firstWorkers = 0;
  double rebalance = 30;
  bool encrypted = false, compareAll = false;
};
void set(const ClusterSettings& settings, wire::Job* job);

// The Job of one process without what RunOptions lack: records, token, addresses, timeouts.
wire::Job jobOf(const train::RunOptions& options);
// Throws kData when the solver is of another version.
train::RunOptions runOf(const wire::Job& job, const HostRows& rows);
// The coordinator of the Job's run, at any port of its host, and what it must know of the work.
cluster::CoordinatorOptions coordinatorOf(const wire::Job& job);
std::unique_ptr<cluster::Work> workOf(const wire::Job& job);
// What all workers of a run must agree on; anything else (paths, threads, instruction set) may differ.
std::string jobDigest(const wire::Job& job);

// A line for people about a lost worker, or about those with which the run goes on; "" for other events.
std::string changeOf(const wire::Event& event);
// A worker got SIGTERM (kEnd), as a scheduler wants its machine or container back, or the run was asked to stop while this
// worker waited for others. The snapshot is written, where one was to be (saved); the run has not succeeded.
Error endedEarly(const solver::Solver& solver, const train::TrainOptions& options, train::Request told,
                 bool saved = true);
control::ToCoordinator::Spent messageOf(const train::Spent& spent);
train::Spent spentOf(const control::ToCoordinator::Spent& message);
wire::Event toEvent(const train::Progress& p);
wire::Event toEvent(int64_t iteration, int net, const std::vector<train::TestOutput>& outputs);
wire::Event toEvent(int64_t iteration, const solver::SnapshotFiles& files);

}  // namespace crema::worker
