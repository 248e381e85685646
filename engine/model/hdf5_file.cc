#include "model/hdf5_file.h"

#include <climits>
#include <fstream>

#include "base/error.h"
#include "model/hdf5_library.h"

namespace crema::model {
namespace {

template <class... A>
[[noreturn]] void damaged(const std::string& file, fmt::format_string<A...> text, A&&... args) {
  badData("{} is no model or snapshot that can be read: {}; take it anew from where it was made", file,
          fmt::format(text, std::forward<A>(args)...));
}

Hdf5Handle openImage(std::string_view bytes, const std::string& file) {
  const auto access = hdf5InMemory(1 << 16);
  if (H5Pset_file_image(access.get(), const_cast<char*>(bytes.data()), bytes.size()) < 0)
    damaged(file, "{}", hdf5Cause());
  auto id = handle<H5Fclose>(H5Fopen(kHdf5NoFile, H5F_ACC_RDONLY, access.get()));
  if (!id.ok()) damaged(file, "{}", hdf5Cause());
  return id;
}

}  // namespace

bool isHdf5(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  char signature[8];
  // At 0, or behind a user block of 512, 1024, 2048... bytes.
  for (int64_t at = 0; in.seekg(at) && in.read(signature, sizeof signature); at = at ? 2 * at : 512)
    if (std::string_view(signature, sizeof signature) == "\x89HDF\r\n\x1a\n") return true;
  return false;
}

Hdf5Reader::Hdf5Reader(std::string_view bytes, std::string file)
    : file_(std::move(file)), size_(bytes.size()), id_(openImage(bytes, file_)) {}

std::vector<Hdf5Reader::Entry> Hdf5Reader::list(const std::string& path) const {
  const auto group = handle<H5Gclose>(H5Gopen2(id_.get(), path.c_str(), H5P_DEFAULT));
  if (!group.ok()) damaged(file_, "group '{}' cannot be opened ({})", path, hdf5Cause());
  struct Found {
    std::vector<std::pair<std::string, H5L_type_t>> links;
  } found;
  const auto add = [](hid_t, const char* name, const H5L_info_t* link, void* to) -> herr_t {
    static_cast<Found*>(to)->links.emplace_back(name, link->type);
    return static_cast<Found*>(to)->links.size() > 100000 ? -1 : 0;
  };
  if (H5Literate(group.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &found) < 0)
    damaged(file_, "group '{}' cannot be listed ({})", path, hdf5Cause());
  std::vector<Entry> entries;
  for (const auto& [name, type] : found.links) {
    if (type != H5L_TYPE_HARD) damaged(file_, "'{}/{}' is a link to somewhere else, which is not followed", path, name);
    H5O_info_t about;
    if (H5Oget_info_by_name(group.get(), name.c_str(), &about, H5P_DEFAULT) < 0)
      damaged(file_, "'{}/{}' cannot be opened ({})", path, name, hdf5Cause());
    if (about.type != H5O_TYPE_GROUP && about.type != H5O_TYPE_DATASET)
      damaged(file_, "'{}/{}' is neither a group nor a dataset", path, name);
    entries.push_back({name, about.type == H5O_TYPE_GROUP});
  }
  return entries;
}

bool Hdf5Reader::has(const std::string& path) const {
  for (size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1))
    if (H5Lexists(id_.get(), path.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return hdf5Cause(), false;
  const htri_t there = H5Lexists(id_.get(), path.c_str(), H5P_DEFAULT);
  if (there < 0) damaged(file_, "'{}' cannot be looked up ({})", path, hdf5Cause());
  return there > 0;
}

Hdf5Handle Hdf5Reader::dataset(const std::string& path) const {
  auto id = handle<H5Dclose>(H5Dopen2(id_.get(), path.c_str(), H5P_DEFAULT));
  if (!id.ok()) damaged(file_, "dataset '{}' cannot be opened ({})", path, hdf5Cause());
  return id;
}

// Values must lie in this file, and be no more than it can hold: deflate, HDF5's strongest filter, expands by at most
// 1032.
void Hdf5Reader::checkStorage(const std::string& path, int64_t dataset, uint64_t bytes) const {
  const auto created = handle<H5Pclose>(H5Dget_create_plist(dataset));
  const H5D_layout_t layout = created.ok() ? H5Pget_layout(created.get()) : H5D_LAYOUT_ERROR;
  if (layout != H5D_COMPACT && layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED)
    damaged(file_, "dataset '{}' is stored in a way that models are not ({})", path, hdf5Cause());
  if (H5Pget_external_count(created.get()) != 0)
    damaged(file_, "dataset '{}' keeps its values in another file, which is not opened", path);
  const uint64_t stored = H5Dget_storage_size(dataset);
  const bool whole = layout == H5D_CHUNKED ? bytes / 1032 <= size_ && (stored > 0 || bytes == 0) : stored == bytes;
  if (!whole || stored > size_)
    damaged(file_, "dataset '{}' claims {} bytes, {} are stored in a file of {}", path, bytes, stored, size_);
}

void Hdf5Reader::readBlob(const std::string& path, caffe::BlobProto* blob) const {
  const auto id = dataset(path);
  const auto type = handle<H5Tclose>(H5Dget_type(id.get()));
  const auto space = handle<H5Sclose>(H5Dget_space(id.get()));
  if (!type.ok() || !space.ok()) damaged(file_, "dataset '{}' has no type or shape ({})", path, hdf5Cause());
  const size_t width = H5Tget_size(type.get());
  if (H5Tget_class(type.get()) != H5T_FLOAT || width > sizeof(double))
    damaged(file_, "dataset '{}' does not hold float or double values, as weights are", path);
  const H5S_class_t kind = H5Sget_simple_extent_type(space.get());
  const int axes = H5Sget_simple_extent_ndims(space.get());
  if ((kind != H5S_SIMPLE && kind != H5S_SCALAR) || axes < 0 || axes > 32)
    damaged(file_, "dataset '{}' has no shape of at most 32 axes", path);
  hsize_t dims[32] = {};
  if (axes > 0 && H5Sget_simple_extent_dims(space.get(), dims, nullptr) < 0)
    damaged(file_, "the shape of dataset '{}' cannot be read ({})", path, hdf5Cause());
  uint64_t count = 1;
  blob->mutable_shape();
  for (int i = 0; i < axes; ++i) {
    if (dims[i] > INT_MAX || count * dims[i] > INT_MAX)
      damaged(file_, "dataset '{}' claims more than {} values (axis {} of {} is {})", path, INT_MAX, i, axes, dims[i]);
    count *= dims[i];
    blob->mutable_shape()->add_dim(static_cast<int64_t>(dims[i]));
  }
  checkStorage(path, id.get(), count * width);
  void* to = nullptr;
  if (width > sizeof(float))
    blob->mutable_double_data()->Resize(static_cast<int>(count), 0), to = blob->mutable_double_data()->mutable_data();
  else
    blob->mutable_data()->Resize(static_cast<int>(count), 0), to = blob->mutable_data()->mutable_data();
  const hid_t wanted = width > sizeof(float) ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT;
  if (count && H5Dread(id.get(), wanted, H5S_ALL, H5S_ALL, H5P_DEFAULT, to) < 0)
    damaged(file_, "the values of dataset '{}' cannot be read ({})", path, hdf5Cause());
}

int Hdf5Reader::readInt(const std::string& path) const {
  const auto id = dataset(path);
  const auto type = handle<H5Tclose>(H5Dget_type(id.get()));
  const auto space = handle<H5Sclose>(H5Dget_space(id.get()));
  long long value = 0;
  if (!type.ok() || H5Tget_class(type.get()) != H5T_INTEGER || H5Sget_simple_extent_npoints(space.get()) != 1)
    damaged(file_, "'{}' is not one integer", path);
  checkStorage(path, id.get(), H5Tget_size(type.get()));
  if (H5Dread(id.get(), H5T_NATIVE_LLONG, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0)
    damaged(file_, "'{}' cannot be read ({})", path, hdf5Cause());
  if (value < INT_MIN || value > INT_MAX) damaged(file_, "'{}' is {}, no iteration or step", path, value);
  return static_cast<int>(value);
}

std::string Hdf5Reader::readString(const std::string& path) const {
  const auto id = dataset(path);
  const auto type = handle<H5Tclose>(H5Dget_type(id.get()));
  const auto space = handle<H5Sclose>(H5Dget_space(id.get()));
  const size_t size = type.ok() ? H5Tget_size(type.get()) : 0;
  if (size == 0 || size > 1 << 16 || H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0 ||
      H5Sget_simple_extent_npoints(space.get()) != 1)
    damaged(file_, "'{}' is not one text of fixed length, at most 65536 bytes", path);
  checkStorage(path, id.get(), size);
  std::string text(size, '\0');
  if (H5Dread(id.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) < 0)
    damaged(file_, "'{}' cannot be read ({})", path, hdf5Cause());
  return text.substr(0, text.find('\0'));
}

}  // namespace crema::model
