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

void addTrain(CLI::App&, Run&);
void addTest(CLI::App&, Run&);
void addTime(CLI::App&, Run&);
void addDeviceQuery(CLI::App&, Run&);
void addPlan(CLI::App&, Run&);
void addCoordinator(CLI::App&, Run&);
void addWorker(CLI::App&, Run&);
void addEngine(CLI::App&, Run&);
void addScore(CLI::App&, Run&);
void addRecords(CLI::App&, Run&);
void addRows(CLI::App&, Run&);
void addIndex(CLI::App&, Run&);
void addConvertMnistData(CLI::App&, Run&);
void addConvertCifarData(CLI::App&, Run&);
void addClassify(CLI::App&, Run&);
void addSummary(CLI::App&, Run&);
void addParseLog(CLI::App&, Run&);
void addPlot(CLI::App&, Run&);
void addDraw(CLI::App&, Run&);
void addConvertImageset(CLI::App&, Run&);
void addComputeImageMean(CLI::App&, Run&);
void addExtractFeatures(CLI::App&, Run&);
void addExport(CLI::App&, Run&);
void addImport(CLI::App&, Run&);
void addUpgrade(CLI::App&, Run&);
void addLinks(CLI::App&, Run&);

void refuseGpu(const std::string& flag);  // invalid() when -gpu was given, in Caffe's words and with the remedy

// Parses, runs, prints errors as stories. Never throws. Caffe's flags have one dash; one and two are the same here.
int runProgram(int argc, char** argv);

}  // namespace crema::cli
