#include "model/hdf5_appender.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/mutex.h"
#include "model/hdf5_library.h"

namespace crema::model {

struct Hdf5Appender::State {
  std::string path;
  Hdf5Handle file;
  struct Set {
    Hdf5Handle id;
    std::vector<hsize_t> dims;
  };
  std::map<std::string, Set> sets;

  [[noreturn]] void failed(const std::string& what) const {
    ioError(
        "cannot {} {}: {}; is its folder there and writable, the disk not full, and no other HDF5Output writing it?",
        what, path, hdf5Cause());
  }

  Set& setOf(const Rows& rows) {
    if (const auto found = sets.find(rows.dataset); found != sets.end()) return found->second;
    std::vector<hsize_t> dims(rows.dims.begin(), rows.dims.end()), most = dims, chunk = dims;
    dims[0] = 0, most[0] = H5S_UNLIMITED, chunk[0] = std::max<hsize_t>(1, chunk[0]);
    hsize_t width = rows.wide ? 8 : 4;
    for (size_t i = 1; i < chunk.size(); ++i) width *= chunk[i];
    chunk[0] = std::max<hsize_t>(1, std::min(chunk[0], (hsize_t{16} << 20) / std::max<hsize_t>(1, width)));
    const auto how = handle<H5Pclose>(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_obj_track_times(how.get(), false);
    H5Pset_chunk(how.get(), static_cast<int>(chunk.size()), chunk.data());
    const auto space = handle<H5Sclose>(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), most.data()));
    auto id =
        handle<H5Dclose>(H5Dcreate2(file.get(), rows.dataset.c_str(), rows.wide ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT,
                                    space.get(), H5P_DEFAULT, how.get(), H5P_DEFAULT));
    if (!id.ok()) failed(fmt::format("make dataset '{}' in", rows.dataset));
    return sets.emplace(rows.dataset, Set{std::move(id), dims}).first->second;
  }

  void append(const Rows& rows) {
    Set& set = setOf(rows);
    std::vector<hsize_t> count(rows.dims.begin(), rows.dims.end()), start(count.size(), 0);
    if (count.size() != set.dims.size() || !std::equal(count.begin() + 1, count.end(), set.dims.begin() + 1))
      invalid("rows of dataset '{}' changed their shape while {} was written; one file takes rows of one shape",
              rows.dataset, path);
    if (count[0] == 0) return;
    start[0] = set.dims[0];
    set.dims[0] += count[0];
    if (H5Dset_extent(set.id.get(), set.dims.data()) < 0) failed("extend");
    const auto to = handle<H5Sclose>(H5Dget_space(set.id.get()));
    const auto from = handle<H5Sclose>(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr));
    H5Sselect_hyperslab(to.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
    if (H5Dwrite(set.id.get(), rows.wide ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT, from.get(), to.get(), H5P_DEFAULT,
                 rows.values) < 0)
      failed("write");
  }
};

Hdf5Appender::Hdf5Appender(const std::string& path) {
  const MutexLock lock(hdf5Mutex());
  startHdf5();
  const auto access = handle<H5Pclose>(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_file_locking(access.get(), false, true);
  state_.reset(
      new State{path, handle<H5Fclose>(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get())), {}});
  if (!state_->file.ok()) state_->failed("create");
}

Hdf5Appender::~Hdf5Appender() {
  const MutexLock lock(hdf5Mutex());
  state_.reset();
}

void Hdf5Appender::append(const std::vector<Rows>& all) {
  const MutexLock lock(hdf5Mutex());
  for (const Rows& rows : all) state_->append(rows);
  if (H5Fflush(state_->file.get(), H5F_SCOPE_GLOBAL) < 0) state_->failed("flush");
}

}  // namespace crema::model
