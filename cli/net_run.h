// What test and time share: a net of the flags, built to run on this machine.
#pragma once
#include "cli/described_net.h"
#include "kernels/context.h"

namespace crema::cli {

struct RunFlags {
  NetFlags net;
  std::string weights, isa, gpu;
  int iterations = 50, threads = 0;
  bool json = false, forwardOnly = false;
};

void addRunFlags(CLI::App& app, RunFlags& f, bool phase);
void checkRun(const RunFlags& f);  // invalid() for what cannot be run; says where it runs
std::unique_ptr<net::Net> netToRun(const RunFlags& f, kernels::Context& kernels, bool needsBackward);

}  // namespace crema::cli
