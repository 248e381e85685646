// SIGINT and SIGHUP as wishes that the training loop polls once per iteration, as in Caffe: stop, snapshot, none.
#pragma once
#include <string>

#include "train/trainer.h"

namespace crema::cli {

Request parseEffect(const std::string& flag,
                    const std::string& text);  // "stop", "snapshot", "none"; invalid() names the flag
void installSignals(Request onInterrupt, Request onHangup);
Request polledRequest();  // the effect of a signal since the last call; stop wins over snapshot

}  // namespace crema::cli
