// crema engine: serves nets and images to a host program that sends every batch itself.
#include "base/error.h"
#include "cli/command.h"
#include "host/net_server.h"

namespace crema::cli {

void addEngine(CLI::App& program, Run& chosen) {
  addCommand(
      program, "engine", "nets and pictures for a host program that gives every batch itself (jcaffe)",
      [](CLI::App& app) -> Run {
        auto job = std::make_shared<std::string>();
        app.add_option("--job", *job, "- : requests (proto/engine.proto) on stdin; the end of stdin ends the process")
            ->required();
        return [job] {
          if (*job != "-")
            invalid("-job must be - (stdin), not '{}'; this subcommand is started by a host program", *job);
          return host::serveNet();
        };
      },
      chosen);
}

}  // namespace crema::cli
