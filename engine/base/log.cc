#include "base/log.h"

#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

namespace crema {
namespace {

// %L is spdlog's one-letter level: I, W, E, as glog writes them.
spdlog::logger& logger() {
  static const auto instance = [] {
    auto sink = std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>(spdlog::color_mode::never);
    auto made = std::make_shared<spdlog::logger>("crema", sink);
    made->set_pattern("%L%m%d %H:%M:%S.%f %5t %s:%#] %v");
    made->set_level(spdlog::level::info);
    return made;
  }();
  return *instance;
}

std::mutex& terminal() {
  static std::mutex mutex;
  return mutex;
}
std::string& statusLine() {
  static std::string text;
  return text;
}

// Runs write() with the status line out of the way. The lock keeps lines of several threads whole.
template <class Write>
void aboveStatus(Write write) {
  std::lock_guard<std::mutex> lock(terminal());
  if (!statusLine().empty()) std::fputs("\r\033[K", stderr);
  write();
  if (!statusLine().empty()) std::fputs(statusLine().c_str(), stderr);
  std::fflush(stderr);
}

spdlog::level::level_enum toSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void setLogLevel(LogLevel lowest) { logger().set_level(toSpdlog(lowest)); }

void writeLog(LogLevel level, const char* file, int line, std::string_view text) {
  const char* slash = std::strrchr(file, '/');
  const spdlog::source_loc where{slash ? slash + 1 : file, line, ""};
  // As glog: a text of several lines has the prefix on its first line only, and one that ends its last line gets no
  // empty one.
  if (text.ends_with('\n')) text.remove_suffix(1);
  aboveStatus([&] { logger().log(where, toSpdlog(level), "{}", text); });
}

bool stderrIsTerminal() { return ::isatty(STDERR_FILENO) == 1; }

void relayLine(std::string_view line) {
  aboveStatus([&] { std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data()); });
}

void setStatusLine(std::string_view text) {
  if (!stderrIsTerminal()) return;
  std::lock_guard<std::mutex> lock(terminal());
  statusLine() = text;
  std::fprintf(stderr, "\r\033[K%s", statusLine().c_str());
  std::fflush(stderr);
}

}  // namespace crema
