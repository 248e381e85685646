#include "cli/command.h"

int main(int argc, char** argv) { return crema::cli::runProgram(argc, argv); }
