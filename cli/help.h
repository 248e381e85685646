// Help texts, and messages for unknown commands and flags.
#pragma once
#include <string>
#include <vector>

#include "cli/command.h"

namespace crema::cli {

void setUpHelp(CLI::App& program, const std::string& name);  // groups, usage lines, one dash as in Caffe

// `help`, `help COMMAND` and `version` as flags; `args` begin with the command.
std::vector<std::string> helpAsFlags(std::vector<std::string> args);

// The help of the command, or of the program. `name`: argv[0] without folders.
std::string helpText(const CLI::App& program, const std::string& name, const std::vector<std::string>& args);

// The sentence for a first word that is no command or a flag that the command has not, with the nearest one; "" when
// all are known. `args` begin with the command.
std::string misspelt(const CLI::App& program, const std::vector<std::string>& args);

// " did you mean -solver FILE?" where a required flag is missing and FILE, which the command has no place for, stands
// without any; else "".
std::string flagMeant(const CLI::App& program, const std::vector<std::string>& args);

}  // namespace crema::cli
