#include "data/staged_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "base/file.h"
#include "base/waiting.h"
#include "data/row.h"

namespace crema::data {
namespace {

constexpr size_t kFirstSegment = size_t{1} << 20, kLargestSegment = size_t{1} << 26;

}  // namespace

int64_t StagePlan::expected() const {
  if (!sharded) return records;
  int64_t all = 0;
  for (int r = lo; r < hi; ++r) all += ownedRecords({records, batch, ranks}, r);
  return all;
}

// Blocks come in the order of the source: of every `ranks` blocks the ones of [lo, hi), so all but the last are full.
int64_t StagePlan::globalOf(int64_t local) const {
  if (!sharded) return local;
  const int64_t size = block(), number = local / size, mine = hi - lo;
  return (number / mine * ranks + lo + number % mine) * size + local % size;
}

int64_t StagePlan::localOf(int64_t global) const {
  if (global < 0 || global >= records) return -1;
  if (!sharded) return global;
  const int64_t size = block(), number = global / size, rank = number % ranks;
  if (rank < lo || rank >= hi) return -1;
  return (number / ranks * (hi - lo) + rank - lo) * size + global % size;
}

StagedSource::StagedSource(const std::string& folder, std::string description, const StagePlan& plan,
                           const Interrupt* interrupt)
    : folder_(folder.empty() ? "." : folder), description_(std::move(description)), plan_(plan), interrupt_(interrupt) {
  std::string name = joinPath(folder_, "crema-rows-XXXXXX");
  file_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) ioError("no file for the rows of {} can be made in {}: {}", description_, folder_, systemError(errno));
  ::unlink(name.c_str());
  rows_.reserve(static_cast<size_t>(plan_.expected()));
}

StagedSource::~StagedSource() {
  for (const Segment& s : segments_) ::munmap(s.at, s.bytes);
  if (file_ >= 0) ::close(file_);
}

// Disk blocks are reserved before they are mapped, so that a full disk is an error here and not a SIGBUS later.
char* StagedSource::room(size_t bytes) {
  if (segments_.empty() || segments_.back().bytes - used_ < bytes) {
    const size_t wanted = segments_.empty() ? kFirstSegment : std::min(kLargestSegment, segments_.back().bytes * 2);
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t size = std::max(wanted, (bytes + page - 1) / page * page);
    if (const int code = ::posix_fallocate(file_, fileBytes_, static_cast<off_t>(size)))
      ioError(
          "{} MiB of rows of {} are kept in {} and {} MiB more do not fit: {}; give the workers' temporary folders "
          "more room, "
          "or use more workers",
          fileBytes_ >> 20, description_, folder_, size >> 20, systemError(code));
    void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_, fileBytes_);
    if (at == MAP_FAILED) ioError("the rows kept in {} cannot be mapped: {}", folder_, systemError(errno));
    const MutexLock lock(mutex_);  // readers use it too
    segments_.push_back(
        {static_cast<char*>(at), size, static_cast<uint64_t>(fileBytes_), std::make_unique<PageClaim>()});
    fileBytes_ += static_cast<int64_t>(size);
    used_ = 0;
  }
  segments_.back().claim->add(bytes, segments_.back().at, segments_.back().bytes);
  char* place = segments_.back().at + used_;
  used_ += bytes;
  return place;
}

void StagedSource::append(int64_t global, const std::vector<std::string_view>& parts) {
  const auto local = static_cast<int64_t>(rows_.size());  // only this thread changes rows_
  if (local >= plan_.expected() || plan_.globalOf(local) != global)
    badData("row {} of {} came where row {} of {} was expected; host and executable are of different versions", global,
            description_, local < plan_.expected() ? plan_.globalOf(local) : -1, plan_.records);
  uint64_t bytes = 0;
  for (const auto part : parts) bytes += rowFieldBytes(part.size());
  char* const begin = room(sizeof bytes + bytes);
  std::memcpy(begin, &bytes, sizeof bytes);
  char* to = begin + sizeof bytes;
  for (const auto part : parts) to = putRowField(to, part);
  const MutexLock lock(mutex_);
  const Segment& segment = segments_.back();
  rows_.push_back(segment.begin + static_cast<uint64_t>(begin - segment.at));
  changed_.notify_all();
}

void StagedSource::finish() {
  if (static_cast<int64_t>(rows_.size()) != plan_.expected())
    badData(
        "{} rows of {} came where {} were counted before; its contents changed, or are drawn anew at each reading: "
        "write them to files "
        "first, or give -persistent",
        rows_.size(), description_, plan_.expected());
}

void StagedSource::fail(const Error& error) {
  const MutexLock lock(mutex_);
  if (!failed_) failed_ = error;
  changed_.notify_all();
}

void StagedSource::close() const {
  const MutexLock lock(mutex_);
  if (!failed_) failed_ = Error(ErrorKind::kStopped, "the rows of " + description_ + " are not wanted any more");
  changed_.notify_all();
}

Record StagedSource::read(int64_t global) const {
  const int64_t local = plan_.localOf(global);
  if (local < 0) internal("row {} of {} belongs to another worker", global, description_);
  MutexLock lock(mutex_);
  waitUntil(changed_, lock, interrupt_,
            [&]() CREMA_REQUIRES(mutex_) { return local < static_cast<int64_t>(rows_.size()) || failed_; });
  if (local >= static_cast<int64_t>(rows_.size())) throw *failed_;
  const uint64_t place = rows_[static_cast<size_t>(local)];
  const Segment& segment = *std::prev(std::upper_bound(segments_.begin(), segments_.end(), place,
                                                       [](uint64_t p, const Segment& s) { return p < s.begin; }));
  PageClaim& claim = *segment.claim;
  char* const at = segment.at;
  const size_t size = segment.bytes;
  const char* const row = at + (place - segment.begin);
  lock.unlock();
  uint64_t length = 0;
  std::memcpy(&length, row, sizeof length);
  claim.add(sizeof length + length, at, size);
  const std::string_view fields(row + sizeof length, length);
  RowReader reader(fields);
  const std::string_view id = reader.next();
  return {id, fields.substr(rowFieldBytes(id.size()))};
}

}  // namespace crema::data
