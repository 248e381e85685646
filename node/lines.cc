#include "node/lines.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/log.h"

namespace crema::node {
namespace {

constexpr size_t kLongestKept = 2000, kPiece = 65536;
constexpr double kBetweenStates = 1;  // seconds between two states of a progress bar
constexpr int kTurnMillis = 100;      // between two looks at whether there is a deadline

// The end of a long line, from the beginning of a character of UTF-8 on.
std::string keptOf(const std::string& line) {
  if (line.size() <= kLongestKept) return line;
  size_t from = line.size() - kLongestKept;
  for (int i = 0; i < 3 && (static_cast<unsigned char>(line[from]) & 0xC0) == 0x80; ++i) ++from;
  return "..." + line.substr(from);
}

}  // namespace

Lines::Lines(Descriptor pipe) : pipe_(std::move(pipe)) {
  if (pipe_.get() >= 0) relay_ = std::thread([this] { relay(); });
}

Lines::~Lines() { end(0); }

void Lines::end(double seconds) {
  if (!relay_.joinable()) return;
  until_ = monotonicSeconds() + seconds;
  relay_.join();
}

void Lines::relay() {
  char buffer[4096];
  for (;;) {
    const double until = until_;  // what is in the pipe is still said then, if not all of what follows
    pollfd lines{pipe_.get(), POLLIN, 0};
    const bool some = ::poll(&lines, 1, kTurnMillis) > 0;
    if (until > 0 && monotonicSeconds() > until) break;
    if (!some) continue;
    const ssize_t n = ::read(pipe_.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    std::for_each(buffer, buffer + n, [this](char c) { take(c); });
  }
  if (!line_.empty()) say(false);
  if (!hidden_.empty()) relayLine(hidden_);
}

void Lines::take(char c) {
  if (c == '\b') return;
  if (c == '\r') {
    if (!line_.empty()) say(true);
  } else if (c == '\n') {
    if (line_.empty() && overwritten_) {  // "\r\n", or the end of a progress bar
      if (!hidden_.empty()) relayLine(std::exchange(hidden_, ""));
      overwritten_ = false;
    } else {
      say(false);
    }
  } else {
    line_ += c;
    if (line_.size() >= kPiece) say(false);
  }
}

void Lines::say(bool overwritten) {
  const double now = monotonicSeconds();
  const bool shows = !overwritten || now - shown_ >= kBetweenStates;
  if (shows) relayLine(line_);
  if (shows && overwritten) shown_ = now;
  hidden_ = shows ? "" : line_;
  {
    const MutexLock lock(mutex_);
    if (overwritten_) last_.pop_back();
    // Behind the stacks of Python's faulthandler, this says nothing of where a program stands.
    if (line_.rfind("Extension modules: ", 0) != 0) last_.push_back(keptOf(line_));
    if (last_.size() > kKept) last_.pop_front();
  }
  overwritten_ = overwritten;
  line_.clear();
}

std::string Lines::last(size_t most) {
  const MutexLock lock(mutex_);
  std::string text = last_.empty() ? "" : "; its last lines:";
  for (size_t i = last_.size() - std::min(most, last_.size()); i < last_.size(); ++i) text += "\n  " + last_[i];
  return text;
}

}  // namespace crema::node
