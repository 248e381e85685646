// crema score: scores records for a host program. crema records: how many records a database has.
#include "host/score.h"

#include <cstdio>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "data/record_writer.h"
#include "data/source.h"

namespace crema::cli {
namespace {

// Refuses files that other layers read records from; a data.mdb without its folder is an LMDB.
void refuseNoDatabase(const std::string& path) {
  if (!fileExists(path) || isDirectory(path)) return;
  std::string start(512, '\0');
  std::ifstream file(path, std::ios::binary);
  start.resize(static_cast<size_t>(file.read(start.data(), static_cast<std::streamsize>(start.size())).gcount()));
  constexpr const char* kTakes = "`crema records` counts those of an LMDB or a LevelDB";
  if (start.starts_with("\x89HDF"))
    invalid("{} is an HDF5 file; {}. Its records are the rows of its datasets, which `h5ls {}` lists", path, kTakes,
            path);
  if (!start.empty() && start.find('\0') == std::string::npos)
    invalid("{} is text; {}. A list of images or of HDF5 files names one a line: `wc -l {}` counts them", path, kTakes,
            path);
}

// The database's kind where -backend is not given: a folder with a CURRENT and no data.mdb is a LevelDB.
caffe::DataParameter::DB backendOf(const std::string& path, const std::string& given) {
  if (!given.empty()) return data::parseBackend(given);
  const bool levelDb = fileExists(joinPath(path, "CURRENT")) && !fileExists(joinPath(path, "data.mdb"));
  return levelDb ? caffe::DataParameter::LEVELDB : caffe::DataParameter::LMDB;
}

}  // namespace

void addScore(CLI::App& program, Run& chosen) {
  addJobCommand(program, chosen, "score", "rows of blobs for a range of records; started by a host program",
                host::serveScores);
}

void addRecords(CLI::App& program, Run& chosen) {
  addCommand(
      program, "records", "print the number of records of a database",
      [](CLI::App& app) -> Run {
        auto path = std::make_shared<std::string>();
        auto backend = std::make_shared<std::string>();
        app.add_option("path", *path, "the LMDB or LevelDB")->required();
        app.add_option("--backend", *backend, "lmdb or leveldb; as it is, what the folder holds");
        return [path, backend] {
          const auto db = backendOf(*path, *backend);
          refuseNoDatabase(*path);
          std::printf("%lld\n", static_cast<long long>(data::openSource(db, *path)->size()));
          return 0;
        };
      },
      chosen);
}

}  // namespace crema::cli
