// Errors: a message (what went wrong, and the remedy), then a frame for each thing inside which it happened, outermost
// last.
//
//   invalid model: kernel_size 11 exceeds the padded input 7x7 (bottom 'data' is 64x3x7x7, pad 0)
//     in layer 'conv2' (Convolution)
//     in net 'AlexNet' from train_val.prototxt
//
// The library throws Error and never exits or aborts; only main and tests decide what an error means for the process.
#pragma once
#include <fmt/core.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace crema {

// Who can help: Spark may retry kPeer, kTimeout and kIo; retrying kInvalid or kData changes nothing.
enum class ErrorKind {
  kInvalid,   // the user's description is wrong: prototxt, flags, shapes
  kData,      // a record, model or snapshot file is damaged or of another shape
  kIo,        // the operating system refused: missing file, full disk
  kPeer,      // another process of the cluster failed or cannot be trusted
  kTimeout,   // a deadline passed
  kStopped,   // somebody asked us to stop
  kInternal,  // our bug
};

const char* name(ErrorKind kind);              // "invalid", "data", ...
ErrorKind kindNamed(const std::string& name);  // the kind of that name; kPeer for a name that another version sent

class [[nodiscard]] Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message);
  Error& addFrame(std::string frame);                             // "in layer 'conv2' (Convolution)"; returns *this
  Error& rename(const std::string& from, const std::string& to);  // in message and frames; from == "" does nothing
  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const std::vector<std::string>& frames() const { return frames_; }
  const char* what() const noexcept override { return text_.c_str(); }  // message and frames, a line each

 private:
  ErrorKind kind_;
  std::string message_, text_;
  std::vector<std::string> frames_;
};

template <class... A>
[[noreturn]] void invalid(fmt::format_string<A...> text, A&&... args) {
  throw Error(ErrorKind::kInvalid, fmt::format(text, std::forward<A>(args)...));
}
template <class... A>
[[noreturn]] void badData(fmt::format_string<A...> text, A&&... args) {
  throw Error(ErrorKind::kData, fmt::format(text, std::forward<A>(args)...));
}
template <class... A>
[[noreturn]] void ioError(fmt::format_string<A...> text, A&&... args) {
  throw Error(ErrorKind::kIo, fmt::format(text, std::forward<A>(args)...));
}
template <class... A>
[[noreturn]] void internal(fmt::format_string<A...> text, A&&... args) {
  throw Error(ErrorKind::kInternal, fmt::format(text, std::forward<A>(args)...));
}

// Runs body; an Error leaving it gets the frame that describe() makes (called only then).
template <class Describe, class Body>
decltype(auto) inside(Describe&& describe, Body&& body) {
  try {
    return body();
  } catch (Error& e) {
    e.addFrame(describe());
    throw;
  }
}

// Runs body; an Error leaving it names the file at `path` by `name`, which is how the user knows it.
template <class Body>
decltype(auto) named(const std::string& path, const std::string& name, Body&& body) {
  try {
    return body();
  } catch (Error& e) {
    if (!name.empty()) e.rename(path, name);
    throw;
  }
}

std::string systemError(int code);  // "No space left on device (28)"
std::string memoryLimit();          // "raise the memory limit of 512 MiB (ulimit -v)"; "" where there is none
std::string memoryRemedy();         // what a user can do when a net does not fit into memory

// Any exception as an Error, for what ends or reports all of them: main, a thread's first function, an answer to a
// host. An Error as it is; kIo for memory or threads that the system refuses; else kInternal.
Error asError(const std::exception_ptr& thrown);

}  // namespace crema
