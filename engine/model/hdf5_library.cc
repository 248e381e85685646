#include "model/hdf5_library.h"

#include "base/error.h"
#include "base/mutex.h"

// libhdf5 calls dlopen() for filter plug-ins, which a static executable cannot load; they are also switched off.
extern "C" void* __wrap_dlopen(const char*, int) { return nullptr; }

namespace crema::model {

Mutex& hdf5Mutex() {
  static Mutex mutex;
  return mutex;
}

std::string hdf5Cause() {
  std::string said;
  const auto first = [](unsigned n, const H5E_error2_t* e, void* to) -> herr_t {
    if (n == 0 && e->desc) *static_cast<std::string*>(to) = e->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first, &said);
  H5Eclear2(H5E_DEFAULT);
  return said.empty() ? "libhdf5 gives no cause" : said;
}

void startHdf5() {
  [[maybe_unused]] static const bool started = [] {
    if (H5open() < 0) internal("libhdf5 does not start");
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    H5PLset_loading_state(0);
    return true;
  }();
}

Hdf5Handle hdf5InMemory(size_t step) {
  startHdf5();
  auto access = handle<H5Pclose>(H5Pcreate(H5P_FILE_ACCESS));
  if (H5Pset_fapl_core(access.get(), step, 0) < 0) internal("libhdf5 refuses files in memory: {}", hdf5Cause());
  return access;
}

}  // namespace crema::model
