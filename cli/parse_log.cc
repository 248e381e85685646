// crema parse_log LOG FOLDER: LOG.train and LOG.test there, as Caffe's tools/extra/parse_log.py.
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/training_log.h"

namespace crema::cli {
namespace {

struct ParseLogFlags {
  std::string log, folder, delimiter = ",";
  bool verbose = false;
};

void write(const std::string& path, const std::vector<LogRow>& rows, const ParseLogFlags& f) {
  if (!rows.empty()) writeFileAtomically(path, toCsv(rows, f.delimiter));
  if (f.verbose) std::printf(rows.empty() ? "Not writing %s; no lines to write\n" : "Wrote %s\n", path.c_str());
}

int parseLog(const ParseLogFlags& f) {
  const TrainingLog log = readTrainingLog(f.log);
  std::error_code error;
  std::filesystem::create_directories(f.folder, error);
  if (error) ioError("cannot make the folder {}: {}", f.folder, systemError(error.value()));
  const std::string place = f.folder + "/" + f.log.substr(f.log.rfind('/') + 1);
  write(place + ".train", log.train, f);
  write(place + ".test", log.test, f);
  return 0;
}

}  // namespace

void addParseLog(CLI::App& program, Run& chosen) {
  addCommand(
      program, "parse_log", "a training log as two CSV files",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<ParseLogFlags>();
        app.add_option("logfile_path", f->log, "the log of `train`")->required();
        app.add_option("output_dir", f->folder, "the folder of the CSV files, made if need be")->required();
        app.add_flag("--verbose", f->verbose, "names the files");
        app.add_option("--delimiter", f->delimiter, "between columns")->capture_default_str();
        return [f] { return parseLog(*f); };
      },
      chosen);
}

}  // namespace crema::cli
