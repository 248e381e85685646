// A command line as gflags and glog took it, made into one that CLI11 takes.
#pragma once
#include <string>
#include <vector>

namespace crema::cli {

// - `-solver x` and `-solver=x` become `--solver`; numbers ("-1") and one-letter options stay. `-stage=` is an empty
//   value, not the next word.
// - A tool called by its own name (cli/links.h) becomes the first word, and so does the first of `commands` where flags
//   stand before it.
// - glog's flags go: `-minloglevel N` is obeyed, the others say where lines go, which here is always stderr.
std::vector<std::string> arguments(int argc, const char* const* argv, const std::vector<std::string>& commands);

}  // namespace crema::cli
