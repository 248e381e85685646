// libhdf5 itself, for the reader and the writer of hdf5_file.h; nothing else includes this.
#pragma once
#include <hdf5.h>

#include "model/hdf5_file.h"

namespace crema::model {

// libhdf5 needs a name for a file in memory, and checks whether a file of that name exists: this one cannot.
constexpr const char* kHdf5NoFile = "/dev/null/memory";

static_assert(sizeof(hid_t) == sizeof(int64_t));

template <herr_t (*close)(hid_t)>
Hdf5Handle handle(hid_t id) {
  return {id, [](int64_t open) { return static_cast<int>(close(open)); }};
}

std::string hdf5Cause();               // the last error, innermost cause first; clears libhdf5's error stack
void startHdf5();                      // once: libhdf5 then prints no errors itself and loads no plug-ins
Hdf5Handle hdf5InMemory(size_t step);  // an access list: files in memory that grow by `step` bytes

}  // namespace crema::model
