// A file that only the host program can read, such as one on HDFS: ranges are requested as they are needed and kept in
// a sparse local file, so a range is fetched once, and a worker fetches only what it reads.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/socket.h"
#include "data/file_bytes.h"

namespace crema::data {

class RemoteFile : public FileBytes {
 public:
  // ask(offset, length) sends a request; the bytes come through arrived(). readAhead: the least number of bytes of a
  // request. patience: seconds that a wait for bytes lasts.
  using Ask = std::function<void(uint64_t offset, uint64_t length)>;
  RemoteFile(const std::string& folder, std::string description, uint64_t size, uint64_t readAhead, Ask ask,
             const Interrupt* interrupt, double patience = 300);
  ~RemoteFile() override;

  uint64_t size() const override { return size_; }
  // Waits for missing bytes. Throws kIo where none have come for so long, the error of fail(), or the
  // interrupt's reason.
  std::string_view range(uint64_t offset, uint64_t length) const override;

  // Throws kData for bytes that were not requested, kIo for the disk.
  void arrived(uint64_t offset, std::string_view bytes);
  void fail(const Error& error);

 private:
  static constexpr uint64_t kChunk = 64 << 10;
  enum State : uint8_t { kAbsent, kAsked, kHere };
  struct Missing {
    uint64_t offset, length;
  };
  std::vector<Missing> claimMissing(uint64_t firstChunk, uint64_t lastChunk) const CREMA_REQUIRES(mutex_);
  void waitFor(uint64_t firstChunk, uint64_t lastChunk) const;
  bool here(uint64_t firstChunk, uint64_t lastChunk) const CREMA_REQUIRES(mutex_);

  std::string folder_, description_;
  uint64_t size_, readAhead_;
  Ask ask_;
  const Interrupt* interrupt_;
  const double patience_;
  int file_ = -1;
  char* at_ = nullptr;
  mutable PageClaim claim_;
  mutable Mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::vector<State> chunks_ CREMA_GUARDED_BY(mutex_);
  std::optional<Error> failed_ CREMA_GUARDED_BY(mutex_);
  uint64_t fetched_ CREMA_GUARDED_BY(mutex_) = 0;
};

}  // namespace crema::data
