// Rows that a host program sends to be scored; each is read once, then dropped. append() waits while many rows are
// unread, so memory stays bounded.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/socket.h"
#include "data/source.h"

namespace crema::data {

class RowWindow : public RecordSource {
 public:
  RowWindow(std::string description, const Interrupt* interrupt)
      : description_(std::move(description)), interrupt_(interrupt) {}

  // For the receiving thread: append() waits while more than kMostBytes or kMostRows are unread and the reader does not
  // need more.
  void append(const std::vector<std::string_view>& parts);  // id, then the fields
  void finish();
  void fail(const Error& error);

  // For the thread that scores: waits for row n - 1 or the end; returns how many have come so far, at most n.
  int64_t waitFor(int64_t n);
  void release(int64_t before);  // rows below are not read again

  int64_t size() const override;  // so far
  Record read(int64_t index) const override;
  std::string describe() const override { return description_; }

 private:
  static constexpr size_t kMostBytes = size_t{32} << 20, kMostRows = 20000;

  std::string description_;
  const Interrupt* interrupt_;
  mutable Mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<std::string> rows_ CREMA_GUARDED_BY(mutex_);
  int64_t first_ CREMA_GUARDED_BY(mutex_) = 0;   // number of rows_[0]
  int64_t wanted_ CREMA_GUARDED_BY(mutex_) = 0;  // how many rows the reader waits for
  size_t bytes_ CREMA_GUARDED_BY(mutex_) = 0;
  bool ended_ CREMA_GUARDED_BY(mutex_) = false;
  std::optional<Error> failed_ CREMA_GUARDED_BY(mutex_);
};

}  // namespace crema::data
