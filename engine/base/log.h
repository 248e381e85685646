// Log lines in the form Caffe's users and their parsers know: `Immdd hh:mm:ss.uuuuuu thread file:line] text`, on
// stderr. Thread-safe. The level is process-wide; kInfo is the default.
#pragma once
#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace crema {

enum class LogLevel { kInfo, kWarning, kError };

void setLogLevel(LogLevel lowest);
void writeLog(LogLevel level, const char* file, int line, std::string_view text);

// A line that stays last on a terminal while log lines scroll above it; empty removes it. Does nothing where stderr is
// a file.
void setStatusLine(std::string_view text);
bool stderrIsTerminal();
void relayLine(std::string_view line);  // another process's log line, as it is

}  // namespace crema

#define CREMA_LOG(level, ...) ::crema::writeLog(level, __FILE__, __LINE__, ::fmt::format(__VA_ARGS__))
#define LOG_INFO(...) CREMA_LOG(::crema::LogLevel::kInfo, __VA_ARGS__)
#define LOG_WARNING(...) CREMA_LOG(::crema::LogLevel::kWarning, __VA_ARGS__)
#define LOG_ERROR(...) CREMA_LOG(::crema::LogLevel::kError, __VA_ARGS__)
