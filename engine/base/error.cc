#include "base/error.h"

#include <sys/resource.h>

#include <cerrno>
#include <new>
#include <system_error>

#include "base/child.h"

namespace crema {

const char* name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid:
      return "invalid";
    case ErrorKind::kData:
      return "data";
    case ErrorKind::kIo:
      return "io";
    case ErrorKind::kPeer:
      return "peer";
    case ErrorKind::kTimeout:
      return "timeout";
    case ErrorKind::kStopped:
      return "stopped";
    case ErrorKind::kInternal:
      return "internal";
  }
  return "unknown";
}

ErrorKind kindNamed(const std::string& text) {
  for (int k = 0; k <= static_cast<int>(ErrorKind::kInternal); ++k)
    if (text == name(static_cast<ErrorKind>(k))) return static_cast<ErrorKind>(k);
  return ErrorKind::kPeer;
}

Error::Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)), text_(message_) {}

Error& Error::addFrame(std::string frame) {
  text_ += "\n  " + frame;
  frames_.push_back(std::move(frame));
  return *this;
}

Error& Error::rename(const std::string& from, const std::string& to) {
  const auto replaceAll = [&](std::string& text) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  };
  if (from.empty()) return *this;
  replaceAll(message_);
  text_ = message_;
  for (std::string& frame : frames_) {
    replaceAll(frame);
    text_ += "\n  " + frame;
  }
  return *this;
}

std::string systemError(int code) { return fmt::format("{} ({})", std::generic_category().message(code), code); }

std::string memoryLimit() {
  rlimit memory{};
  if (::getrlimit(RLIMIT_AS, &memory) != 0 || memory.rlim_cur == RLIM_INFINITY) return "";
  return fmt::format("raise the memory limit of {} MiB (ulimit -v)", memory.rlim_cur >> 20);
}

std::string memoryRemedy() {
  const std::string raise = memoryLimit();
  return "use a smaller batch_size (a deploy net's is the first dim of its input)" +
         (raise.empty() ? ", or a machine with more memory" : ", or " + raise);
}

Error asError(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return {ErrorKind::kIo, "out of memory; " + memoryRemedy()};
  } catch (const std::system_error& e) {
    if (e.code() == std::errc::resource_unavailable_try_again)  // what std::thread throws
      return {ErrorKind::kIo, fmt::format("cannot start a thread: {}; {}", e.code().message(), startRemedy(EAGAIN))};
    return {ErrorKind::kIo, e.what()};
  } catch (const std::exception& e) {
    return {ErrorKind::kInternal, e.what()};
  } catch (...) {
    return {ErrorKind::kInternal, "an exception of a type that the library does not throw"};
  }
}

}  // namespace crema
