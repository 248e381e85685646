#include "tensor/blob.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace crema {

// Vector kernels may read (never write) up to one vector past the end of a row: 64 bytes of slack on both sides of the
// data.
class Storage {
 public:
  explicit Storage(size_t bytes) : bytes_(bytes) {
    constexpr size_t kHuge = size_t{2} << 20;
    const size_t align = bytes >= kHuge ? kHuge : 64;
    size_t room = (bytes + 2 * 64 + align - 1) / align * align + align;
    // calloc: the system gives zeroed pages on first touch, so a net that only describes shapes costs no memory
    base_ = std::calloc(room, 1);
    if (!base_)
      throw Error(ErrorKind::kIo, fmt::format("out of memory: {} bytes for a blob; {}", bytes, memoryRemedy()));
    void* start = base_;
    std::align(align, bytes + 2 * 64, start, room);
    if (align == kHuge) madvise(start, room / kHuge * kHuge, MADV_HUGEPAGE);
    begin_ = static_cast<char*>(start) + 64;
  }
  Storage(std::shared_ptr<Storage> whole, size_t offset, size_t bytes)  // a part of another, kept alive by it
      : base_(nullptr), begin_(whole->begin_ + offset), bytes_(bytes), whole_(std::move(whole)) {}
  ~Storage() { std::free(base_); }
  Storage(const Storage&) = delete;
  void* begin() const { return begin_; }
  size_t bytes() const { return bytes_; }
  // Copies the first `bytes`, and gives its pages back meanwhile, so that large blobs are not in memory twice: what is here
  // is lost. Not for a part.
  void moveTo(void* to, size_t bytes) {
    constexpr size_t kPage = 4096, kPiece = size_t{8} << 20;
    for (size_t at = 0; at < bytes; at += kPiece) {
      const size_t n = std::min(kPiece, bytes - at);
      std::memcpy(static_cast<char*>(to) + at, begin_ + at, n);
      if (n < kPiece) break;
      char* first = begin_ + at;
      first += (kPage - reinterpret_cast<uintptr_t>(first) % kPage) % kPage;
      madvise(first, n - kPage, MADV_DONTNEED);
    }
  }
  bool isPart() const { return whole_ != nullptr; }

 private:
  void* base_;
  char* begin_;
  size_t bytes_;
  std::shared_ptr<Storage> whole_;
};

void Blob::reshape(const Shape& shape) { shape_ = shape; }

void* Blob::raw(std::shared_ptr<Storage>& s, DType want) const {
  if (want != dtype_)
    internal("a {} blob was used as {}", sizeOf(dtype_) == 8 ? "double" : "float",
             sizeOf(want) == 8 ? "double" : "float");
  const size_t need = static_cast<size_t>(count()) * sizeOf(dtype_);
  if (!s || s->bytes() < need) {
    auto grown = std::make_shared<Storage>(need);
    if (s) std::memcpy(grown->begin(), s->begin(), s->bytes());
    s = std::move(grown);
  }
  return s->begin();
}

void Blob::shareData(const Blob& other) {
  if (other.dtype_ != dtype_ || other.count() != count())
    internal("shareData between {} and {}", shape_.brief(), other.shape_.brief());
  other.raw(other.data_, dtype_);
  data_ = other.data_;
}

void Blob::shareDiff(const Blob& other) {
  if (other.dtype_ != dtype_ || other.count() != count())
    internal("shareDiff between {} and {}", shape_.brief(), other.shape_.brief());
  other.raw(other.diff_, dtype_);
  diff_ = other.diff_;
}

void Blob::joinDataWithDiff() {
  raw(diff_, dtype_);
  data_ = diff_;
}

void Blob::place(std::shared_ptr<Storage>& mine, std::shared_ptr<Storage>& whole, const Blob& other, int64_t offset) {
  if (other.dtype_ != dtype_ || offset % 16 || offset + count() > other.count())
    internal("placing {} at {}", shape_.brief(), offset);
  other.raw(whole, dtype_);
  const size_t bytes = static_cast<size_t>(count()) * sizeOf(dtype_);
  auto part = std::make_shared<Storage>(whole, static_cast<size_t>(offset) * sizeOf(dtype_), bytes);
  const size_t both = mine ? std::min(bytes, mine->bytes()) : 0;
  if (mine && mine.use_count() == 1 && !mine->isPart())
    mine->moveTo(part->begin(), both);
  else if (mine)
    std::memcpy(part->begin(), mine->begin(), both);
  mine = std::move(part);
}

void Blob::placeDataIn(const Blob& whole, int64_t offset) { place(data_, whole.data_, whole, offset); }
void Blob::placeDiffIn(const Blob& whole, int64_t offset) { place(diff_, whole.diff_, whole, offset); }

void Blob::copyDataFrom(const Blob& other) {
  if (other.dtype_ != dtype_ || other.count() != count())
    internal("copyDataFrom between {} and {}", shape_.brief(), other.shape_.brief());
  std::memcpy(raw(data_, dtype_), other.raw(other.data_, dtype_), static_cast<size_t>(count()) * sizeOf(dtype_));
}

void Blob::copyDiffFrom(const Blob& other) {
  if (other.dtype_ != dtype_ || other.count() != count())
    internal("copyDiffFrom between {} and {}", shape_.brief(), other.shape_.brief());
  std::memcpy(raw(diff_, dtype_), other.raw(other.diff_, dtype_), static_cast<size_t>(count()) * sizeOf(dtype_));
}

void Blob::fillData(double value) {
  withType(dtype_, [&]<class T>() { std::fill_n(mutableData<T>(), count(), static_cast<T>(value)); });
}

void Blob::fillDiff(double value) {
  withType(dtype_, [&]<class T>() { std::fill_n(mutableDiff<T>(), count(), static_cast<T>(value)); });
}

double Blob::dataAt(int index) const {
  return withType(dtype_, [&]<class T>() { return static_cast<double>(data<T>()[index]); });
}

double Blob::diffAt(int index) const {
  return withType(dtype_, [&]<class T>() { return static_cast<double>(diff<T>()[index]); });
}

}  // namespace crema
