#include "node/descriptor.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/error.h"
#include "base/fd_io.h"

namespace crema::node {

Descriptor memoryHolding(std::string_view bytes, const char* what) {
  Descriptor memory(::memfd_create("crema", MFD_CLOEXEC));
  const auto part = [&](size_t at) { return ::write(memory.get(), bytes.data() + at, bytes.size() - at); };
  if (!memory.open() || !moveAll(bytes.size(), part))
    ioError("there is no memory of {} bytes for {}: {}; {}", bytes.size(), what, systemError(errno), memoryRemedy());
  ::lseek(memory.get(), 0, SEEK_SET);
  return memory;
}

}  // namespace crema::node
