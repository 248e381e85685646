// crema score: scores records for a host program. crema records: how many records a database has.
#include "host/score.h"

#include <cstdio>

#include "cli/command.h"
#include "data/record_writer.h"
#include "data/source.h"

namespace crema::cli {
void addScore(CLI::App& program, Run& chosen) {
  addJobCommand(program, chosen, "score", "rows of blobs for a range of records; started by a host program",
                host::serveScores);
}

void addRecords(CLI::App& program, Run& chosen) {
  addCommand(
      program, "records", "print the number of records of a database",
      [](CLI::App& app) -> Run {
        auto path = std::make_shared<std::string>();
        auto backend = std::make_shared<std::string>("lmdb");
        app.add_option("path", *path, "the database")->required();
        app.add_option("--backend", *backend, "lmdb or leveldb")->capture_default_str();
        return [path, backend] {
          const auto source = data::openSource(data::parseBackend(*backend), *path);
          std::printf("%lld\n", static_cast<long long>(source->size()));
          return 0;
        };
      },
      chosen);
}

}  // namespace crema::cli
