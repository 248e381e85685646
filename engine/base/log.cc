#include "base/log.h"

#include "base/error.h"
#include "base/log_files.h"
#include "base/mutex.h"

#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace crema {
namespace {

constexpr const char* kPrefix = "%L%m%d %H:%M:%S.%f %5t %s:%#] ";  // %L is spdlog's one-letter level: I, W, E
constexpr const char* kNames[] = {"INFO", "WARNING", "ERROR"};

LogSettings& settings() {
  static LogSettings current;
  return current;
}

spdlog::level::level_enum toSpdlog(int severity) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::info, spdlog::level::warn, spdlog::level::err};
  return severity > 2 ? spdlog::level::off : kLevels[std::max(severity, 0)];
}

// A file that is made with its first line. An error of writing is reported once.
class GlogFile : public spdlog::sinks::base_sink<std::mutex> {
 public:
  GlogFile(const LogSettings& s, int severity) : severity_(severity), stem_(s.program), folder_(folderOf(s)) {
    set_level(toSpdlog(severity));
  }
  ~GlogFile() override {
    if (file_) std::fclose(file_);
  }
  void write(std::string_view line) {
    if (!file_ && !failed_) open();
    if (!file_) return;
    std::fwrite(line.data(), 1, line.size(), file_);
    if (std::fflush(file_) != 0 && !std::exchange(failed_, true))
      std::fprintf(stderr, "cannot write to the log file %s: %s\n", path_.c_str(), systemError(errno).c_str());
  }
  int severity() const { return severity_; }

 private:
  static std::string folderOf(const LogSettings& s) {
    if (!s.folder.empty()) return s.folder;
    const char* temporary = std::getenv("TMPDIR");
    return temporary && *temporary ? temporary : "/tmp";
  }
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    write({line.data(), line.size()});
  }
  void flush_() override {}

  void open() {
    char host[256] = "?", date[32], day[32];
    ::gethostname(host, sizeof host - 1);
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&now, &local);
    std::strftime(date, sizeof date, "%Y%m%d-%H%M%S", &local),
        std::strftime(day, sizeof day, "%Y/%m/%d %H:%M:%S", &local);
    const char* user = std::getenv("USER");
    const std::string who = user && *user ? user : fmt::format("uid{}", ::getuid());
    const std::string name =
        fmt::format("{}.{}.{}.log.{}.{}.{}", stem_, host, who, kNames[severity_], date, ::getpid());
    path_ = folder_ + "/" + name;
    file_ = std::fopen(path_.c_str(), "ae");
    if (!file_) {
      failed_ = true;
      std::fprintf(stderr, "COULD NOT CREATE LOGFILE '%s': %s\n", path_.c_str(), systemError(errno).c_str());
      return;
    }
    const std::string head = fmt::format(
        "Log file created at: {}\nRunning on machine: {}\nLog line format: [IWEF]mmdd hh:mm:ss.uuuuuu threadid "
        "file:line] msg\n",
        day, host);
    std::fwrite(head.data(), 1, head.size(), file_);
    const std::string link = fmt::format("{}/{}.{}", folder_, stem_, kNames[severity_]);
    ::unlink(link.c_str());
    [[maybe_unused]] const int made = ::symlink(name.c_str(), link.c_str());  // a convenience, as in glog
  }

  int severity_;
  std::string stem_, folder_, path_;
  std::FILE* file_ = nullptr;
  bool failed_ = false;
};

struct Sinks {
  std::shared_ptr<spdlog::sinks::ansicolor_stderr_sink_mt> console;
  std::vector<std::shared_ptr<GlogFile>> files;
  std::shared_ptr<spdlog::logger> logger, toFiles;
};

Sinks& sinks() {
  static Sinks& all = *[] {
    auto* made = new Sinks;  // never freed: destructors of other statics may log
    made->console = std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>(spdlog::color_mode::never);
    made->logger = std::make_shared<spdlog::logger>("crema", made->console);
    made->toFiles = std::make_shared<spdlog::logger>("files", spdlog::sinks_init_list{});
    made->logger->set_pattern(std::string(kPrefix) + "%v");
    made->logger->set_level(spdlog::level::info);
    return made;
  }();
  return all;
}

Mutex& terminal() {
  static Mutex mutex;
  return mutex;
}
std::string& statusLine() {
  static std::string text;
  return text;
}

// Without the terminal's wrapping: what goes beyond its width is cut, and the line stays one that \r returns to.
void showStatus() { std::fprintf(stderr, "\033[?7l%s\033[?7h", statusLine().c_str()); }

// Runs write() with the status line out of the way. The lock keeps lines of several threads whole.
template <class Write>
void aboveStatus(Write write) {
  const MutexLock lock(terminal());
  if (!statusLine().empty()) std::fputs("\r\033[K", stderr);
  write();
  if (!statusLine().empty()) showStatus();
  std::fflush(stderr);
}

}  // namespace

const LogSettings& logging() { return settings(); }

void setLogging(const LogSettings& s) {
  settings() = s;
  Sinks& all = sinks();
  all.files.clear();
  all.logger->sinks() = {all.console}, all.toFiles->sinks().clear();
  if (!s.onlyStderr && (!s.folder.empty() || !s.alsoStderr))
    for (int severity = 0; severity < 3; ++severity) {
      all.files.push_back(std::make_shared<GlogFile>(s, severity));
      all.logger->sinks().push_back(all.files.back()), all.toFiles->sinks().push_back(all.files.back());
    }
  for (const auto& logger : {all.logger, all.toFiles}) {
    logger->set_pattern(s.prefix ? std::string(kPrefix) + "%v" : "%v");
    logger->set_level(toSpdlog(s.lowest));
  }
  all.console->set_level(s.onlyStderr || s.alsoStderr ? spdlog::level::info : toSpdlog(s.stderrThreshold));
}

void setLogLevel(LogLevel lowest) {
  sinks().logger->set_level(toSpdlog(std::max(settings().lowest, static_cast<int>(lowest))));
}

void logToFiles(LogLevel level, const char* file, int line, std::string_view text) {
  const char* slash = std::strrchr(file, '/');
  sinks().toFiles->log({slash ? slash + 1 : file, line, ""}, toSpdlog(static_cast<int>(level)), "{}", text);
}

void writeLog(LogLevel level, const char* file, int line, std::string_view text) {
  const char* slash = std::strrchr(file, '/');
  const spdlog::source_loc where{slash ? slash + 1 : file, line, ""};
  // As glog: a text of several lines has the prefix on its first line only, and one that ends its last line gets no
  // empty one.
  if (text.ends_with('\n')) text.remove_suffix(1);
  aboveStatus([&] { sinks().logger->log(where, toSpdlog(static_cast<int>(level)), "{}", text); });
}

bool stderrIsTerminal() { return ::isatty(STDERR_FILENO) == 1; }

void relayLine(std::string_view line) {
  thread_local int severity = 0;  // a text of several lines has it on the first
  if (line.size() > 1 && std::isdigit(static_cast<unsigned char>(line[1])) && std::strchr("IWE", line[0]))
    severity = line[0] == 'I' ? 0 : line[0] == 'W' ? 1 : 2;
  if (line.starts_with("crema: error:")) severity = 2;
  aboveStatus([&] {
    if (sinks().console->should_log(toSpdlog(severity)))
      std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
    for (const auto& file : sinks().files)
      if (severity >= file->severity()) file->write(std::string(line) + "\n");
  });
}

void setStatusLine(std::string_view text) {
  if (!stderrIsTerminal()) return;
  const MutexLock lock(terminal());
  statusLine() = text;
  std::fputs("\r\033[K", stderr);
  showStatus();
  std::fflush(stderr);
}

}  // namespace crema
