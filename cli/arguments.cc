#include "cli/arguments.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/log_files.h"
#include "cli/links.h"

namespace crema::cli {
namespace {

// Flags that take a value, as -flag=VALUE or -flag VALUE; the rest are switches.
constexpr std::array kValued = {"log_dir",      "minloglevel",      "stderrthreshold", "v",           "vmodule",
                                "max_log_size", "log_backtrace_at", "log_link",        "logbuflevel", "logbufsecs"};
constexpr std::array kSwitches = {"logtostderr", "alsologtostderr", "colorlogtostderr", "log_prefix",
                                  "stop_logging_if_full_disk"};
// Flags of glog that have no effect here; stderr says so. (Other ignored ones would change nothing with glog either, as
// no line here is verbose and every line is written at once.)
constexpr std::array kNotDone = {"max_log_size", "log_backtrace_at", "log_link", "colorlogtostderr"};

template <class Names>
bool among(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

int number(const std::string& flag, const std::string& value) {
  int parsed = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (error != std::errc() || end != value.data() + value.size())
    invalid("-{} must be a number, not '{}': 0 for INFO, 1 for WARNING, 2 for ERROR, 3 for none of these", flag, value);
  return parsed;
}

// A switch's value in gflags' spelling; a switch without value is on.
bool truth(const std::string& flag, const std::string& value) {
  constexpr std::array kOn = {"", "1", "t", "true", "y", "yes"};
  constexpr std::array kOff = {"0", "f", "false", "n", "no"};
  if (std::find(kOn.begin(), kOn.end(), value) != kOn.end()) return true;
  if (std::find(kOff.begin(), kOff.end(), value) != kOff.end()) return false;
  invalid("-{} must be true or false, not '{}'", flag, value);
}

void logFolder(const std::string& folder, LogSettings& s) {
  if (!isDirectory(folder)) invalid("-log_dir: there is no folder {}; make it first", folder);
  s.folder = folder;
}

void take(const std::string& name, const std::string& value, LogSettings& s) {
  if (name == "log_dir") logFolder(value, s);
  if (name == "minloglevel") s.lowest = number(name, value);
  if (name == "stderrthreshold") s.stderrThreshold = number(name, value);
  if (name == "logtostderr") s.onlyStderr = truth(name, value);
  if (name == "alsologtostderr") s.alsoStderr = truth(name, value);
  if (name == "log_prefix") s.prefix = truth(name, value);
  if (among(kNotDone, name))
    std::fprintf(stderr, "crema: -%s is not done: log files are not cut, linked elsewhere, traced or coloured\n",
                 name.c_str());
}

// Parses one of glog's flags at argv[i]; returns how many words it takes, 0 when it is not one of glog's.
int glogWords(int argc, const char* const* argv, int i, LogSettings& s) {
  std::string word = argv[i];
  if (word.size() < 2 || word[0] != '-') return 0;
  word.erase(0, word[1] == '-' ? 2 : 1);
  const size_t equals = word.find('=');
  std::string name = word.substr(0, equals), value = equals == std::string::npos ? "" : word.substr(equals + 1);
  const bool no = name.starts_with("no") && among(kSwitches, name.substr(2));
  if (no) name.erase(0, 2), value = "false";
  const bool valued = among(kValued, name);
  if (!valued && !among(kSwitches, name)) return 0;
  const bool apart = valued && equals == std::string::npos && i + 1 < argc;
  take(name, apart ? argv[i + 1] : value, s);
  return apart ? 2 : 1;
}

// GLOG_alsologtostderr is not read, as Caffe's programs set that flag themselves.
LogSettings fromEnvironment(const std::string& program) {
  LogSettings s;
  s.program = program;
  const auto get = [](const char* name) { return std::getenv(name); };
  const auto on = [&](const char* name, bool otherwise) {
    return get(name) ? std::strchr("tTyY1", *get(name)) != nullptr : otherwise;
  };
  if (get("GLOG_log_dir")) s.folder = get("GLOG_log_dir");
  if (get("GLOG_minloglevel")) s.lowest = std::atoi(get("GLOG_minloglevel"));
  if (get("GLOG_stderrthreshold")) s.stderrThreshold = std::atoi(get("GLOG_stderrthreshold"));
  s.onlyStderr = on("GLOG_logtostderr", false), s.prefix = on("GLOG_log_prefix", true);
  return s;
}

}  // namespace

std::vector<std::string> glogFlags() {
  std::vector<std::string> all(kValued.begin(), kValued.end());
  all.insert(all.end(), kSwitches.begin(), kSwitches.end());
  return all;
}

std::string programName(const std::string& executable) {
  const std::string name = executable.substr(executable.rfind('/') + 1);
  return name.empty() ? "crema" : name;
}

std::vector<std::string> arguments(int argc, const char* const* argv, const std::vector<std::string>& commands) {
  std::vector<std::string> args;
  const std::string named = argc > 0 ? commandOfName(argv[0]) : "";
  if (!named.empty()) args.push_back(named);
  LogSettings settings = fromEnvironment(programName(argc > 0 ? argv[0] : ""));
  for (int i = 1; i < argc; ++i) {
    if (const int words = glogWords(argc, argv, i, settings)) {
      i += words - 1;
      continue;
    }
    std::string a = argv[i];
    const bool flag = a.size() > 2 && a[0] == '-' && (std::isalpha(static_cast<unsigned char>(a[1])) || a[1] == '-');
    if (flag && a[1] != '-' && a[2] != '=') a = "-" + a;
    const bool empty = flag && a.ends_with('=');
    if (empty) a.pop_back();
    args.push_back(std::move(a));
    if (empty) args.emplace_back();
  }
  if (named.empty() && !args.empty() && args[0].starts_with('-')) {
    const auto command = std::find_if(args.begin(), args.end(), [&](const auto& a) { return among(commands, a); });
    if (command != args.end()) std::rotate(args.begin(), command, command + 1);
  }
  setLogging(settings);
  return args;
}

}  // namespace crema::cli
