#include <fmt/core.h>
#include <malloc.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <vector>

#include "base/error.h"
#include "base/log_files.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/help.h"

namespace crema::cli {

void addCommand(CLI::App& program, const std::string& name, const std::string& summary,
                const std::function<Run(CLI::App&)>& declare, Run& chosen) {
  CLI::App* app = program.add_subcommand(name, summary);
  Run run = declare(*app);
  app->callback([run, &chosen] { chosen = run; });
}

void addJobCommand(CLI::App& program, Run& chosen, const char* name, const char* summary, int (*serve)()) {
  addCommand(
      program, name, summary,
      [serve](CLI::App& app) -> Run {
        auto job = std::make_shared<std::string>("-");
        app.add_option("--job", *job, "- : read one delimited Job (proto/wire.proto) from stdin")
            ->capture_default_str();
        return [job, serve] { return serve(); };
      },
      chosen);
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

// Flushes stdout; an error there (a full disk) turns success into failure.
int flushed(int code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  ioError("cannot write to stdout: {}; is the disk full, or the reader gone?", systemError(errno));
}

int guarded(const Run& run) {
  try {
    return flushed(run());
  } catch (...) {
    const Error e = asError(std::current_exception());
    setStatusLine("");
    std::fprintf(stderr, "crema: error: %s\n", e.what());
    logToFiles(LogLevel::kError, __FILE__, __LINE__, e.what());
    if (e.kind() == ErrorKind::kInternal)
      std::fputs("This is a mistake of ours; please report it with the command and the log.\n", stderr);
    return exitCode(e.kind());
  }
}

int refused(const std::string& why) {
  std::fprintf(stderr, "crema: error: %s\n", why.c_str());
  return 2;
}

// Memory of a megabyte and more, such as a blob's, comes from the system and goes back to it. By itself glibc keeps what lies
// between such pieces once one has been freed: AlexNet trains in 50 MiB less.
void returnLargeMemory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 8 << 20);
}

// Signals that a broken pipe or a file size limit raises become errors of the write.
void mindSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // the write fails instead, and is reported
  std::signal(SIGBUS, [](int) {
    static const char message[] =
        "crema: error: a file that is being read became shorter (a database under copying?); leave it alone while it "
        "is in use, then run this again\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message, sizeof message - 1);
    ::_exit(1);
  });
}

void addAll(CLI::App& program, Run& chosen) {
#define CREMA_ADD_COMMAND(NAME) add##NAME(program, chosen);
  CREMA_COMMANDS(CREMA_ADD_COMMAND)
#undef CREMA_ADD_COMMAND
}

}  // namespace

int runProgram(int argc, char** argv) {
  returnLargeMemory();
  mindSignals();
  CLI::App program(
      "crema: Caffe networks, trained and scored; one static executable.\n"
      "  crema train -solver lenet_solver.prototxt\n"
      "  crema train -solver lenet_solver.prototxt -ranks 8 -workers 2\n"
      "  crema test -model lenet_train_test.prototxt -weights lenet.caffemodel -iterations 100");
  program.set_version_flag("--version", std::string("crema ") + CREMA_VERSION);
  program.require_subcommand(1);
  const std::string name = programName(argc > 0 ? argv[0] : "");
  Run chosen;
  addAll(program, chosen);
  setUpHelp(program, name);
  std::vector<std::string> commands = {"help", "version"}, args;
  for (const CLI::App* c : program.get_subcommands({})) commands.push_back(c->get_name());
  try {
    args = helpAsFlags(arguments(argc, argv, commands));
    if (const std::string why = misspelt(program, args); !why.empty()) return refused(why);
    std::vector<std::string> reversed(args.rbegin(), args.rend());
    program.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::fputs(helpText(program, name, args).c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return program.exit(e);
    const bool known = !args.empty() && args[0][0] != '-';
    std::string what = e.what();
    if (what.starts_with("--")) what.erase(0, 1);
    if (constexpr std::string_view kStart = "Could not convert: -"; what.starts_with(kStart))
      what = what.substr(kStart.size()) + " is not a number, or is too large: whole ones are at most 2147483647";
    return refused(fmt::format("{};{} `crema {}--help` lists what there is", what, flagMeant(program, args),
                               known ? args[0] + " " : ""));
  } catch (const Error& e) {
    return refused(e.what());
  }
  return guarded(chosen);
}

}  // namespace crema::cli
