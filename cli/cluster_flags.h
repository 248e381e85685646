// The flags of a cluster of workers, for `crema train`, `crema worker` and `crema coordinator`.
#pragma once
#include <CLI/CLI.hpp>

#include "worker/job.h"

namespace crema::cli {

inline void addClusterFlags(CLI::App& app, worker::ClusterSettings& s) {
  app.add_option("--join_timeout", s.joinTimeout, "seconds to wait for all workers")->capture_default_str();
  app.add_option("--step_timeout", s.stepTimeout, "seconds without a sign of life before a worker is given up")
      ->capture_default_str();
  app.add_option(
         "--replacement", s.replacement,
         "when a worker is lost: continue (the others go on at once; another may join), wait (for another one, then "
         "go on without it) or fail; the model does not depend on it")
      ->capture_default_str();
  app.add_option("--replacement_timeout", s.replacementTimeout, "seconds to wait for another worker")
      ->capture_default_str();
  app.add_option("--least_workers", s.leastWorkers, "how many are enough; 0: all to begin with, and one to go on")
      ->capture_default_str();
  app.add_option(
         "--first_workers", s.firstWorkers,
         "with how many training begins as soon as they are ready; the others, up to -workers, join when they come; "
         "0: all")
      ->capture_default_str();
  app.add_option(
         "--rebalance", s.rebalance,
         "seconds in which the workers' speeds are measured before slow ones get fewer ranks; 0: never; the model "
         "does not depend on it")
      ->capture_default_str();
  app.add_flag(
      "--compare_all", s.compareAll,
      "compare the workers' copies of the records whole before training, and not only a sample of sets above 64 MiB; "
      "each worker reads its own once, within -join_timeout");
  app.add_flag("--encrypt", s.encrypted, "seal what the processes say to each other on the network");
}

}  // namespace crema::cli
