// Where lines go, by glog's settings: log files as glog writes them, beside or instead of stderr.
//
// FOLDER/PROGRAM.HOST.USER.log.SEVERITY.YYYYMMDD-HHMMSS.PID for INFO, WARNING and ERROR, each with its severity and
// those above it, from its first line on; the link FOLDER/PROGRAM.SEVERITY names the newest.
#pragma once
#include <string>
#include <string_view>

#include "base/log.h"

namespace crema {

struct LogSettings {
  std::string program = "crema";
  std::string folder;  // log_dir; "": no files, unless there is nowhere else to write to (as glog: $TMPDIR or /tmp)
  int lowest = 0;      // minloglevel: 0 INFO, 1 WARNING, 2 ERROR, 3 none of these
  int stderrThreshold = 2;  // for stderr, where alsoStderr is false
  bool onlyStderr = false;  // logtostderr: no files
  bool alsoStderr = true;   // as Caffe's programs set it
  bool prefix = true;
};
void setLogging(const LogSettings& settings);
const LogSettings& logging();
// For lines that go to stderr in another form.
void logToFiles(LogLevel level, const char* file, int line, std::string_view text);

}  // namespace crema
