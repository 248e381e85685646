#include "cli/net_run.h"

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace crema::cli {

void addRunFlags(CLI::App& app, RunFlags& f, bool phase) {
  addNetFlags(app, f.net, phase);
  app.add_option("--iterations", f.iterations, "batches to run")->capture_default_str();
  app.add_option("--threads", f.threads, "threads; 0: all cores")->capture_default_str();
  app.add_option("--isa", f.isa, kernels::isaNames());
  app.add_option("--gpu", f.gpu, "refused: this executable computes on the CPU");
}

void checkRun(const RunFlags& f) {
  refuseGpu(f.gpu);
  if (f.iterations < 1) invalid("-iterations must be at least 1, not {}", f.iterations);
  LOG_INFO("Use CPU.");
}

std::unique_ptr<net::Net> netToRun(const RunFlags& f, kernels::Context& kernels, bool needsBackward) {
  net::NetOptions o;
  o.kernels = &kernels;
  o.needsBackward = needsBackward;
  o.log = true;
  o.data.folder = parentDirectory(f.net.model);
  return readFlaggedNet(f.net, o);
}

}  // namespace crema::cli
