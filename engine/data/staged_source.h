// Records that a host program sends while the run already goes on. They are kept in one unlinked file, mapped piece by
// piece: later epochs need no host, the kernel can reclaim the memory, and nothing is left on disk. A reader waits for
// a record that has not come yet.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/mutex.h"
#include "base/socket.h"
#include "data/shard.h"
#include "data/source.h"

namespace crema::data {

// Which records of the source this process gets, in ascending order.
struct StagePlan {
  int64_t records = 0;  // of the whole source
  bool sharded = false;
  int batch = 1, ranks = 1;  // for sharded: the blocks of the ranks [lo, hi)
  int lo = 0, hi = 1;

  int64_t block() const { return Sharding{records, batch, ranks}.block(); }
  int64_t expected() const;               // how many come
  int64_t globalOf(int64_t local) const;  // the source's number of this process's local-th record
  int64_t localOf(int64_t global) const;  // -1: not of this process
};

class StagedSource : public RecordSource {
 public:
  // The file is made in `folder`; ioError names it. A raised interrupt ends every wait.
  StagedSource(const std::string& folder, std::string description, const StagePlan& plan, const Interrupt* interrupt);
  ~StagedSource() override;

  static constexpr int64_t kTableBytes = sizeof(uint64_t);  // of memory, for each row that is kept

  // The next row: id and the fields of RowReader's layout are `parts`. Called by one thread. ioError: the disk is full.
  void append(int64_t global, const std::vector<std::string_view>& parts);
  void finish();                  // kData unless all expected records have come
  void fail(const Error& error);  // read() throws it from now on, waiting readers too

  int64_t size() const override { return plan_.records; }
  // value: the fields behind the id. Waits for it; throws the error of fail(), or kStopped after close().
  Record read(int64_t global) const override;
  void close() const override;
  std::string describe() const override { return description_; }
  const StagePlan& plan() const { return plan_; }

 private:
  char* room(size_t bytes);

  struct Segment {
    char* at;
    size_t bytes;
    uint64_t begin;  // in the file
    std::unique_ptr<PageClaim> claim;
  };
  std::string folder_, description_;
  StagePlan plan_;
  const Interrupt* interrupt_;
  int file_ = -1;
  int64_t fileBytes_ = 0;
  std::vector<Segment> segments_;
  size_t used_ = 0;  // of the last segment
  mutable Mutex mutex_;
  mutable std::condition_variable changed_;
  // By local number: where a row begins in the file, its length (u64) and then its fields. Reserved for all rows at
  // once, so that it never moves; memory is used as rows come.
  std::vector<uint64_t> rows_;
  mutable std::optional<Error> failed_ CREMA_GUARDED_BY(mutex_);
};

}  // namespace crema::data
