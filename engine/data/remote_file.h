// A file that only the host program can read, such as one on HDFS: ranges are asked for as they are needed and kept in
// a sparse local file, so a range is fetched once and a worker never copies more than it reads.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/socket.h"
#include "data/file_bytes.h"

namespace crema::data {

class RemoteFile : public FileBytes {
 public:
  // ask(offset, length) sends a request; the bytes come through arrived(). readAhead: how much is asked for at least.
  using Ask = std::function<void(uint64_t offset, uint64_t length)>;
  RemoteFile(const std::string& folder, std::string description, uint64_t size, uint64_t readAhead, Ask ask,
             const Interrupt* interrupt);
  ~RemoteFile() override;

  uint64_t size() const override { return size_; }
  // Waits for what is not here yet; kTimeout after kPatience without any byte of it, what fail() said, or the
  // interrupt's reason.
  std::string_view range(uint64_t offset, uint64_t length) const override;

  void arrived(uint64_t offset, std::string_view bytes);  // kData unless it is what was asked for; ioError: the disk
  void fail(const Error& error);
  uint64_t fetched() const;  // bytes so far

 private:
  static constexpr uint64_t kChunk = 64 << 10;
  static constexpr double kPatience = 300;  // seconds
  enum State : uint8_t { kAbsent, kAsked, kHere };
  void askFor(uint64_t firstChunk, uint64_t lastChunk) const;
  bool here(uint64_t firstChunk, uint64_t lastChunk) const;

  std::string folder_, description_;
  uint64_t size_, readAhead_;
  Ask ask_;
  const Interrupt* interrupt_;
  int file_ = -1;
  char* at_ = nullptr;
  mutable PageClaim claim_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::vector<State> chunks_;
  std::optional<Error> failed_;
  uint64_t fetched_ = 0;
};

}  // namespace crema::data
