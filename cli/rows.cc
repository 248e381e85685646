// crema rows and crema index: records of a database, and where they are, for a host program.
#include "host/rows.h"

#include "cli/command.h"

namespace crema::cli {

void addRows(CLI::App& program, Run& chosen) {
  addJobCommand(program, chosen, "rows", "records of a database as rows; started by a host program", host::serveRows);
}

void addIndex(CLI::App& program, Run& chosen) {
  addJobCommand(program, chosen, "index", "the index of a database that the host reads; started by a host program",
                host::serveIndex);
}

}  // namespace crema::cli
