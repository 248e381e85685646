// The lines that a program writes into a pipe: they are passed on to the log, and the last of them kept for errors.
#pragma once
#include <atomic>
#include <deque>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "node/descriptor.h"

namespace crema::node {

// A carriage return ends a line as well, which the next one overwrites, as on a terminal: of a progress bar the log has
// a line a second at most and its last state, and errors its last state alone. Backspaces are left out. A line of more
// than 64 KiB comes in pieces.
class Lines {
 public:
  static constexpr size_t kShown = 20, kKept = 60;  // in an error; with stacks, and at most
  static constexpr double kLastWords = 2;           // seconds for the last lines of a process that has ended

  explicit Lines(Descriptor pipe);  // its reading end; -1: there is none, and no lines
  ~Lines();                         // what was not read yet is dropped
  Lines(const Lines&) = delete;
  // Reads to the end of what is written, for so many seconds at most: what a program has started may keep a pipe open.
  void end(double seconds);
  // "; its last lines:" and so many of them, or fewer; "" when there are none. Of a long one its end.
  std::string last(size_t most);

 private:
  void relay();
  void take(char c);
  void say(bool overwritten);

  Descriptor pipe_;
  std::atomic<double> until_{0};  // by monotonicSeconds(); 0: to the end
  std::string line_, hidden_;     // hidden_: the state of a progress bar that was not shown
  double shown_ = -1e9;           // when the last such state was
  bool overwritten_ = false;      // the next line takes the last one's place
  Mutex mutex_;
  std::deque<std::string> last_ CREMA_GUARDED_BY(mutex_);
  std::thread relay_;
};

}  // namespace crema::node
