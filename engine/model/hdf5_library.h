// What both halves of hdf5_file.h need of libhdf5 itself; only they include this.
#pragma once
#include <hdf5.h>

#include "model/hdf5_file.h"

namespace crema::model {

// libhdf5 wants a name for what is in memory, and looks whether such a file exists.
constexpr const char* kHdf5NoFile = "/dev/null/memory";

static_assert(sizeof(hid_t) == sizeof(int64_t));

template <herr_t (*close)(hid_t)>
Hdf5Handle handle(hid_t id) {
  return {id, [](int64_t open) { return static_cast<int>(close(open)); }};
}

std::string hdf5Cause();  // what went wrong last, innermost first; then the library's list of errors is empty
void startHdf5();         // once; errors are then ours to tell, and nothing is loaded
Hdf5Handle hdf5InMemory(size_t step);  // an access list: files in memory that grow by `step` bytes

}  // namespace crema::model
