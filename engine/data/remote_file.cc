#include "data/remote_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/deadline.h"
#include "base/fd_io.h"
#include "base/file.h"
#include "base/waiting.h"

namespace crema::data {

RemoteFile::RemoteFile(const std::string& folder, std::string description, uint64_t size, uint64_t readAhead, Ask ask,
                       const Interrupt* interrupt, double patience)
    : folder_(folder.empty() ? "." : folder),
      description_(std::move(description)),
      size_(size),
      readAhead_(readAhead),
      ask_(std::move(ask)),
      interrupt_(interrupt),
      patience_(patience),
      chunks_((size + kChunk - 1) / kChunk, kAbsent) {
  if (size == 0) badData("{} is empty; was its conversion interrupted?", description_);
  std::string name = joinPath(folder_, "crema-ranges-XXXXXX");
  file_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) ioError("no file for ranges of {} can be made in {}: {}", description_, folder_, systemError(errno));
  ::unlink(name.c_str());
  if (::ftruncate(file_, static_cast<off_t>(size)) != 0)
    ioError("no sparse file of {} bytes can be made in {}: {}", size, folder_, systemError(errno));
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file_, 0);
  if (at == MAP_FAILED) ioError("{} bytes in {} cannot be mapped: {}", size, folder_, systemError(errno));
  at_ = static_cast<char*>(at);
}

RemoteFile::~RemoteFile() {
  if (at_) ::munmap(at_, size_);
  if (file_ >= 0) ::close(file_);
}

bool RemoteFile::here(uint64_t first, uint64_t last) const {
  return std::all_of(chunks_.begin() + static_cast<int64_t>(first), chunks_.begin() + static_cast<int64_t>(last) + 1,
                     [](State s) { return s == kHere; });
}

// What is missing of chunks [first, last] and nobody has asked for, extended to at least readAhead_ bytes. It counts as
// asked for from now on: the caller asks, without the mutex, which arrived() needs while a request is being written.
std::vector<RemoteFile::Missing> RemoteFile::claimMissing(uint64_t first, uint64_t last) const {
  std::vector<Missing> missing;
  for (uint64_t c = first; c <= last; ++c) {
    if (chunks_[c] != kAbsent) continue;
    uint64_t end = c;
    const uint64_t most = std::max(last + 1, std::min<uint64_t>(chunks_.size(), c + readAhead_ / kChunk));
    while (end < most && chunks_[end] == kAbsent) chunks_[end++] = kAsked;
    missing.push_back({c * kChunk, std::min(size_, end * kChunk) - c * kChunk});
    c = end - 1;
  }
  return missing;
}

void RemoteFile::waitFor(uint64_t first, uint64_t last) const {
  MutexLock lock(mutex_);
  while (!here(first, last)) {
    if (failed_) throw *failed_;
    const auto changed = [this, before = fetched_]() CREMA_REQUIRES(mutex_) { return failed_ || fetched_ != before; };
    if (!waitUntil(changed_, lock, Deadline::after(patience_), interrupt_, changed))
      ioError(
          "no bytes of {} have come for {} s; is the file system of the source overloaded or gone? The executor's log "
          "may say more",
          description_, patience_);
  }
}

std::string_view RemoteFile::range(uint64_t offset, uint64_t length) const {
  if (length == 0) return {};
  claim_.add(length, at_, size_);
  const uint64_t first = offset / kChunk, last = (offset + length - 1) / kChunk;
  std::vector<Missing> missing;
  {
    const MutexLock lock(mutex_);
    if (here(first, last)) return {at_ + offset, length};
    missing = claimMissing(first, last);
  }
  for (const Missing& m : missing) ask_(m.offset, m.length);
  waitFor(first, last);
  return {at_ + offset, length};
}

void RemoteFile::arrived(uint64_t offset, std::string_view bytes) {
  if (offset % kChunk || offset >= size_ || bytes.size() > size_ - offset ||
      (bytes.size() % kChunk && offset + bytes.size() != size_))
    badData("the host sent bytes [{}, {}) of {}, which nobody asked for; host and executable are of different versions",
            offset, offset + bytes.size(), description_);
  const auto part = [&](size_t at) {
    return ::pwrite(file_, bytes.data() + at, bytes.size() - at, static_cast<off_t>(offset + at));
  };
  if (!moveAll(bytes.size(), part))
    ioError("ranges of {} are kept in {}, and writing there fails: {}; give the workers' temporary folders more room",
            description_, folder_, systemError(errno));
  const MutexLock lock(mutex_);
  for (uint64_t c = offset / kChunk; c * kChunk < offset + bytes.size(); ++c) chunks_[c] = kHere;
  fetched_ += bytes.size();
  changed_.notify_all();
}

void RemoteFile::fail(const Error& error) {
  const MutexLock lock(mutex_);
  if (!failed_) failed_ = error;
  changed_.notify_all();
}

}  // namespace crema::data
