// A command line as gflags and glog took it, made into one that CLI11 takes.
#pragma once
#include <string>
#include <vector>

namespace crema::cli {

// - `-solver x` and `-solver=x` become `--solver`; numbers ("-1") and one-letter options stay. `-stage=` is an empty
//   value, not the next word.
// - A tool called by its own name (cli/links.h) becomes the first word, and so does the first of `commands` where flags
//   stand before it.
// - glog's flags and environment (GLOG_log_dir, GLOG_minloglevel, GLOG_stderrthreshold, GLOG_logtostderr,
//   GLOG_log_prefix) become the log's settings. invalid() for a value that is none.
std::vector<std::string> glogFlags();                    // their names, without dashes
std::string programName(const std::string& executable);  // without folders
std::vector<std::string> arguments(int argc, const char* const* argv, const std::vector<std::string>& commands);

}  // namespace crema::cli
