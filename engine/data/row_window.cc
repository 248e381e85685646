#include "data/row_window.h"

#include <algorithm>

#include "base/waiting.h"
#include "data/row.h"

namespace crema::data {

void RowWindow::append(const std::vector<std::string_view>& parts) {
  size_t bytes = 0;
  for (const auto part : parts) bytes += rowFieldBytes(part.size());
  std::string row(bytes, '\0');
  char* to = row.data();
  for (const auto part : parts) to = putRowField(to, part);
  MutexLock lock(mutex_);
  waitUntil(changed_, lock, interrupt_, [&]() CREMA_REQUIRES(mutex_) {
    return (bytes_ < kMostBytes && rows_.size() < kMostRows) || first_ + static_cast<int64_t>(rows_.size()) < wanted_ ||
           failed_;
  });
  if (failed_) throw *failed_;
  rows_.push_back(std::move(row));
  bytes_ += bytes;
  changed_.notify_all();
}

void RowWindow::finish() {
  const MutexLock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void RowWindow::fail(const Error& error) {
  const MutexLock lock(mutex_);
  if (!failed_) failed_ = error;
  changed_.notify_all();
}

int64_t RowWindow::waitFor(int64_t n) {
  MutexLock lock(mutex_);
  wanted_ = n;
  changed_.notify_all();
  const auto have = [&]() CREMA_REQUIRES(mutex_) { return first_ + static_cast<int64_t>(rows_.size()); };
  waitUntil(changed_, lock, interrupt_, [&]() CREMA_REQUIRES(mutex_) { return have() >= n || ended_ || failed_; });
  if (have() < n && failed_) throw *failed_;
  return std::min(n, have());
}

void RowWindow::release(int64_t before) {
  const MutexLock lock(mutex_);
  for (; first_ < before && !rows_.empty(); ++first_) {
    bytes_ -= rows_.front().size();
    rows_.pop_front();
  }
  changed_.notify_all();
}

int64_t RowWindow::size() const {
  const MutexLock lock(mutex_);
  return first_ + static_cast<int64_t>(rows_.size());
}

Record RowWindow::read(int64_t index) const {
  const MutexLock lock(mutex_);
  if (index < first_ || index >= first_ + static_cast<int64_t>(rows_.size()))
    internal("row {} of {} is not here", index, description_);
  const std::string_view row = rows_[static_cast<size_t>(index - first_)];
  RowReader reader(row);
  const std::string_view id = reader.next();
  return {id, row.substr(rowFieldBytes(id.size()))};
}

}  // namespace crema::data
