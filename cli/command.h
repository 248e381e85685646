// One file per subcommand; each adds itself to the program (commands.cc lists them).
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace crema::cli {

// A subcommand: its options are declared on `app`, and run() is called when it was chosen. run() returns the exit code
// or throws.
using Run = std::function<int()>;
void addCommand(CLI::App& program, const std::string& name, const std::string& summary,
                const std::function<Run(CLI::App&)>& declare, Run& chosen);
// A subcommand whose one option is -job, always "-": a Job on stdin, which `serve` reads.
void addJobCommand(CLI::App& program, Run& chosen, const char* name, const char* summary, int (*serve)());

// The subcommands, in the order of `crema --help`. A new one is a word here and a file that defines add<Word>.
// clang-format off: one name a line
#define CREMA_COMMANDS(X) \
  X(Train)                \
  X(Test)                 \
  X(Time)                 \
  X(DeviceQuery)          \
  X(Plan)                 \
  X(Coordinator)          \
  X(Worker)               \
  X(Node)                 \
  X(Relay)                \
  X(Engine)               \
  X(Score)                \
  X(Records)              \
  X(Rows)                 \
  X(Index)                \
  X(Classify)             \
  X(Summary)              \
  X(Layers)               \
  X(Draw)                 \
  X(ParseLog)             \
  X(Plot)                 \
  X(Export)               \
  X(Import)               \
  X(ConvertMnistData)     \
  X(ConvertCifarData)     \
  X(ConvertImageset)      \
  X(ComputeImageMean)     \
  X(ExtractFeatures)      \
  X(Upgrade)              \
  X(Links)
// clang-format on
#define CREMA_DECLARE_COMMAND(NAME) void add##NAME(CLI::App&, Run&);
CREMA_COMMANDS(CREMA_DECLARE_COMMAND)
#undef CREMA_DECLARE_COMMAND

void refuseGpu(const std::string& flag);  // invalid() when -gpu was given, in Caffe's words and with the remedy

// Parses the command line, runs the command, prints errors. Never throws. Caffe's flags have one dash; one and two are
// the same here.
int runProgram(int argc, char** argv);

}  // namespace crema::cli
