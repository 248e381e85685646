#include "cli/arguments.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/log.h"
#include "cli/links.h"

namespace crema::cli {
namespace {

// Those that take a value, behind a blank too; the rest are switches.
constexpr std::array kValued = {"log_dir",      "minloglevel",      "stderrthreshold", "v",           "vmodule",
                                "max_log_size", "log_backtrace_at", "log_link",        "logbuflevel", "logbufsecs"};
constexpr std::array kSwitches = {"logtostderr", "alsologtostderr", "colorlogtostderr", "log_prefix",
                                  "stop_logging_if_full_disk"};

template <class Names>
bool among(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void minimum(const std::string& value) {
  if (value == "0") setLogLevel(LogLevel::kInfo);
  if (value == "1") setLogLevel(LogLevel::kWarning);
  if (value == "2" || value == "3") setLogLevel(LogLevel::kError);
}

// The words of one of glog's flags from i on: how many there are, 0 when it is none of them.
int glogWords(int argc, const char* const* argv, int i) {
  std::string word = argv[i];
  if (word.size() < 2 || word[0] != '-') return 0;
  word.erase(0, word[1] == '-' ? 2 : 1);
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const bool no = name.starts_with("no") && among(kSwitches, name.substr(2));
  if (among(kSwitches, name) || no) return 1;
  if (!among(kValued, name)) return 0;
  const bool apart = equals == std::string::npos && i + 1 < argc;
  if (name == "minloglevel") minimum(apart ? argv[i + 1] : equals == std::string::npos ? "" : word.substr(equals + 1));
  return apart ? 2 : 1;
}

}  // namespace

std::vector<std::string> arguments(int argc, const char* const* argv, const std::vector<std::string>& commands) {
  std::vector<std::string> args;
  const std::string named = argc > 0 ? commandOfName(argv[0]) : "";
  if (!named.empty()) args.push_back(named);
  for (int i = 1; i < argc; ++i) {
    if (const int words = glogWords(argc, argv, i)) {
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
  return args;
}

}  // namespace crema::cli
