#include "node/kept.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>

#include "base/fd_io.h"
#include "base/socket.h"

namespace crema::node {
namespace {

constexpr double kAlways = 1e8;  // a program may compute on one block for long; failures end the wait

Descriptor namelessFile(const std::string& folder) {
  Descriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.open()) return file;
  std::string name = folder + "/crema-epochs-XXXXXX";  // not every file system has files without a name
  file = Descriptor(::mkostemp(name.data(), O_CLOEXEC));
  if (!file.open())
    ioError("cannot keep rows for later epochs in {}: {}; name another folder as spark.local.dir", folder,
            systemError(errno));
  ::unlink(name.c_str());
  return file;
}

// `bytes` from one file to another, at the given places; false with errno.
bool copy(int to, int64_t toAt, int from, int64_t fromAt, uint64_t bytes) {
  if (::lseek(to, toAt, SEEK_SET) != toAt) return false;
  off_t at = fromAt;
  return moveAll(bytes, [&](size_t done) { return ::sendfile(to, from, &at, bytes - done); });
}

}  // namespace

void Kept::add(const std::string& queue, const Item& item) {
  const MutexLock lock(mutex_);
  if (!file_.open()) file_ = namelessFile(folder_);
  if (!copy(file_.get(), end_, item.block->get(), 0, item.bytes))
    ioError(
        "cannot keep rows for later epochs in {}: {}; make room there, name another folder as spark.local.dir, or feed "
        "each epoch with a train() of its own",
        folder_, systemError(errno));
  blocks_.push_back({queue, end_, item.rows, item.first, item.count, item.bytes});
  end_ += static_cast<int64_t>(item.bytes);
}

void Kept::replay(const std::string& queue, Broker& broker, const std::function<bool()>& withdrawn) {
  std::vector<Block> blocks;
  {
    const MutexLock lock(mutex_);
    std::copy_if(blocks_.begin(), blocks_.end(), std::back_inserter(blocks),
                 [&](const Block& b) { return b.queue == queue; });
  }
  for (const Block& b : blocks) {
    if (withdrawn()) return;
    Descriptor memory(::memfd_create("crema-rows", MFD_CLOEXEC));
    {
      const MutexLock lock(mutex_);
      if (!memory.open() || !copy(memory.get(), 0, file_.get(), b.at, b.bytes))
        ioError("cannot feed rows of an earlier epoch again: {}; {}", systemError(errno), memoryRemedy());
    }
    Item item;
    item.block = std::make_shared<Descriptor>(std::move(memory));
    item.rows = b.rows, item.first = b.first, item.count = b.count, item.bytes = b.bytes;
    if (!broker.put(queue, std::move(item), {Deadline::after(kAlways), withdrawn})) return;
  }
}

void Kept::forget(const std::string& queue) {
  const MutexLock lock(mutex_);
  std::erase_if(blocks_, [&](const Block& b) { return b.queue == queue; });
  if (!blocks_.empty()) return;
  file_ = Descriptor();
  end_ = 0;
}

}  // namespace crema::node
