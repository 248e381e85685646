#include "base/error.h"
#include "model/hdf5_library.h"

namespace crema::model {
namespace {

Hdf5Handle createInMemory(const std::string& file) {
  const auto access = hdf5InMemory(4 << 20);
  auto id = handle<H5Fclose>(H5Fcreate(kHdf5NoFile, H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
  if (!id.ok()) internal("libhdf5 cannot begin {}", file);
  return id;
}

}  // namespace

Hdf5Writer::Hdf5Writer(std::string file) : file_(std::move(file)), id_(createInMemory(file_)) {}

void Hdf5Writer::group(const std::string& path) {
  for (size_t end = path.find('/');; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (H5Lexists(id_.get(), part.c_str(), H5P_DEFAULT) <= 0) {
      const auto made = handle<H5Gclose>(H5Gcreate2(id_.get(), part.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      if (!made.ok()) internal("libhdf5 cannot make group '{}' of {}", part, file_);
    }
    if (end == std::string::npos) return;
  }
}

void Hdf5Writer::dataset(const std::string& path, int64_t type, int64_t space, const void* values) {
  const auto how = handle<H5Pclose>(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_obj_track_times(how.get(), false);
  const auto id =
      handle<H5Dclose>(H5Dcreate2(id_.get(), path.c_str(), type, space, H5P_DEFAULT, how.get(), H5P_DEFAULT));
  if (!id.ok() || H5Dwrite(id.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
    internal("libhdf5 cannot write '{}' of {}", path, file_);
}

void Hdf5Writer::blob(const std::string& path, const caffe::BlobProto& blob, bool diff) {
  std::vector<hsize_t> dims;
  for (int64_t d : blob.shape().dim()) dims.push_back(static_cast<hsize_t>(d));
  const bool wide = blob.double_data_size() + blob.double_diff_size() > 0;
  const auto space = handle<H5Sclose>(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr));
  if (wide)
    dataset(path, H5T_NATIVE_DOUBLE, space.get(), diff ? blob.double_diff().data() : blob.double_data().data());
  else
    dataset(path, H5T_NATIVE_FLOAT, space.get(), diff ? blob.diff().data() : blob.data().data());
}

void Hdf5Writer::integer(const std::string& path, int value) {
  const hsize_t one = 1;
  const auto space = handle<H5Sclose>(H5Screate_simple(1, &one, nullptr));
  dataset(path, H5T_NATIVE_INT, space.get(), &value);
}

void Hdf5Writer::string(const std::string& path, const std::string& value) {
  const auto type = handle<H5Tclose>(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.get(), value.size() + 1);
  H5Tset_strpad(type.get(), H5T_STR_NULLTERM);
  const auto space = handle<H5Sclose>(H5Screate(H5S_SCALAR));
  dataset(path, type.get(), space.get(), value.c_str());
}

std::string Hdf5Writer::finish() {
  H5Fflush(id_.get(), H5F_SCOPE_GLOBAL);
  const ssize_t size = H5Fget_file_image(id_.get(), nullptr, 0);
  if (size <= 0) internal("libhdf5 has no bytes for {}", file_);
  std::string bytes(static_cast<size_t>(size), '\0');
  if (H5Fget_file_image(id_.get(), bytes.data(), bytes.size()) != size) internal("libhdf5 lost bytes of {}", file_);
  return bytes;
}

}  // namespace crema::model
