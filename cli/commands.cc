#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "cli/arguments.h"
#include "cli/command.h"

namespace crema::cli {

void addCommand(CLI::App& program, const std::string& name, const std::string& summary,
                const std::function<Run(CLI::App&)>& declare, Run& chosen) {
  CLI::App* app = program.add_subcommand(name, summary);
  Run run = declare(*app);
  app->callback([run, &chosen] { chosen = run; });
}

void refuseGpu(const std::string& flag) {
  if (!flag.empty())
    invalid(
        "-gpu {}: Cannot use GPU in CPU-only Caffe: check mode. Leave -gpu out; this executable computes on the CPU",
        flag);
}

namespace {

int exitCode(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid:
      return 2;
    case ErrorKind::kInternal:
      return 70;  // EX_SOFTWARE
    case ErrorKind::kStopped:
      return 3;
    default:
      return 1;
  }
}

// What was printed must have arrived: the end of a table in a full disk is no success.
int flushed(int code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  ioError("cannot write to stdout: {}; is the disk full, or the reader gone?", systemError(errno));
}

int guarded(const Run& run) {
  try {
    return flushed(run());
  } catch (const Error& e) {
    setStatusLine("");
    std::fprintf(stderr, "crema: error: %s\n", e.what());
    if (e.kind() == ErrorKind::kInternal)
      std::fputs("This is a mistake of ours; please report it with the command and the log.\n", stderr);
    return exitCode(e.kind());
  } catch (const std::bad_alloc&) {
    std::fputs("crema: error: out of memory; use a smaller batch_size or a machine with more memory\n", stderr);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "crema: error: %s\n", e.what());
  }
  return 1;
}

int unknownCommand(const std::vector<std::string>& commands, const std::string& name) {
  std::string known;
  for (const std::string& command : commands) known += (known.empty() ? "" : ", ") + command;
  std::fprintf(stderr, "crema: error: there is no command '%s'; commands: %s. `crema --help` says more\n", name.c_str(),
               known.c_str());
  return 2;
}

// As a worker lives with what others do to its files and pipes.
void mindSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // the write fails instead, and is told
  std::signal(SIGBUS, [](int) {
    static const char story[] =
        "crema: error: a file that is being read became shorter (a database under copying?); leave it alone while it "
        "is in use, then run this again\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, story, sizeof story - 1);
    ::_exit(1);
  });
}

void addAll(CLI::App& program, Run& chosen) {
  using Add = void (*)(CLI::App&, Run&);
  static const std::vector<Add> kAll = {addTrain,
                                        addTest,
                                        addTime,
                                        addDeviceQuery,
                                        addPlan,
                                        addCoordinator,
                                        addWorker,
                                        addEngine,
                                        addScore,
                                        addRecords,
                                        addRows,
                                        addIndex,
                                        addSummary,
                                        addDraw,
                                        addParseLog,
                                        addPlot,
                                        addExport,
                                        addImport,
                                        addConvertMnistData,
                                        addConvertCifarData,
                                        addConvertImageset,
                                        addComputeImageMean,
                                        addExtractFeatures,
                                        addUpgrade,
                                        addLinks};
  for (const Add add : kAll) add(program, chosen);
}

}  // namespace

int runProgram(int argc, char** argv) {
  mindSignals();
  CLI::App program(
      "crema: Caffe networks, trained and scored; one static executable.\n"
      "  crema train -solver lenet_solver.prototxt\n"
      "  crema train -solver lenet_solver.prototxt -ranks 8 -workers 2\n"
      "  crema test -model lenet_train_test.prototxt -weights lenet.caffemodel -iterations 100");
  program.set_version_flag("--version", std::string("crema ") + CREMA_VERSION);
  program.require_subcommand(1);
  program.get_formatter()->column_width(34);
  Run chosen;
  addAll(program, chosen);
  std::vector<std::string> commands;
  for (const CLI::App* c : program.get_subcommands({})) commands.push_back(c->get_name());
  auto args = arguments(argc, argv, commands);
  const std::string first = args.empty() ? "" : args[0];
  const bool known = std::find(commands.begin(), commands.end(), first) != commands.end();
  try {
    if (!first.empty() && first[0] != '-' && !known) return unknownCommand(commands, first);
    std::reverse(args.begin(), args.end());
    program.parse(args);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return program.exit(e);
    const std::string command = known ? first + " " : "";
    std::fprintf(stderr, "crema: error: %s; `crema %s--help` lists what there is\n", e.what(), command.c_str());
    return 2;
  }
  return guarded(chosen);
}

}  // namespace crema::cli
