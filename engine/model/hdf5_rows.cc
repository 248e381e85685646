#include "model/hdf5_rows.h"

#include <climits>
#include <cstring>
#include <list>
#include <map>

#include "base/answering_child.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mutex.h"
#include "model/hdf5_library.h"

namespace crema::model {
namespace {

template <class... A>
[[noreturn]] void refused(const std::string& file, fmt::format_string<A...> text, A&&... args) {
  badData("{} cannot be read as HDF5 data: {}", file, fmt::format(text, std::forward<A>(args)...));
}

struct Request {
  int64_t file, first, count, floats;  // count 0: describe
};

struct Dataset {
  Hdf5Handle id;
  std::vector<hsize_t> dims;
};

// Runs in the child. Keeps the files used last open.
class Reader {
 public:
  Reader(std::vector<std::string> files, std::vector<std::string> datasets)
      : files_(std::move(files)), names_(std::move(datasets)) {}

  std::string answer(std::string_view bytes) {
    Request request;
    std::memcpy(&request, bytes.data(), sizeof request);
    const Open& open = opened(static_cast<size_t>(request.file));
    return request.count == 0 ? described(open) : rows(open, request);
  }

 private:
  struct Open {
    size_t number;
    Hdf5Handle file;
    std::vector<Dataset> sets;
  };

  const Open& opened(size_t number) {
    constexpr size_t kMostOpen = 8;
    for (auto at = open_.begin(); at != open_.end(); ++at)
      if (at->number == number) {
        open_.splice(open_.begin(), open_, at);
        return open_.front();
      }
    startHdf5();
    const std::string& path = files_[number];
    const auto access = handle<H5Pclose>(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_file_locking(access.get(), false, true);                // read-only and network file systems have none
    H5Pset_cache(access.get(), 0, 12421, size_t{256} << 20, 1.0);  // of chunks, for each dataset
    Open open{number, handle<H5Fclose>(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get())), {}};
    if (!open.file.ok())
      refused(path, "{}; is it a whole HDF5 file (of version 1.10 or before, h5py: libver='v110')?", hdf5Cause());
    for (const auto& name : names_) open.sets.push_back(dataset(open, path, name));
    open_.push_front(std::move(open));
    if (open_.size() > kMostOpen) open_.pop_back();
    return open_.front();
  }

  Dataset dataset(const Open& open, const std::string& path, const std::string& name) const {
    if (H5Lexists(open.file.get(), name.c_str(), H5P_DEFAULT) <= 0) {
      hdf5Cause();
      refused(path, "it has no dataset '{}'; the tops of the layer name the datasets, here {}", name, namesIn(open));
    }
    Dataset set{handle<H5Dclose>(H5Dopen2(open.file.get(), name.c_str(), H5P_DEFAULT)), {}};
    if (!set.id.ok()) refused(path, "'{}' is no dataset that can be opened ({})", name, hdf5Cause());
    const auto type = handle<H5Tclose>(H5Dget_type(set.id.get()));
    const H5T_class_t kind = type.ok() ? H5Tget_class(type.get()) : H5T_NO_CLASS;
    if (kind != H5T_FLOAT && kind != H5T_INTEGER)
      refused(path, "dataset '{}' holds neither integers nor floating point numbers", name);
    const auto space = handle<H5Sclose>(H5Dget_space(set.id.get()));
    const int axes = space.ok() ? H5Sget_simple_extent_ndims(space.get()) : -1;
    if (axes < 1 || axes > 32) refused(path, "dataset '{}' has {} axes; it needs one of rows at least", name, axes);
    set.dims.resize(static_cast<size_t>(axes));
    H5Sget_simple_extent_dims(space.get(), set.dims.data(), nullptr);
    uint64_t width = 1;
    for (size_t i = 1; i < set.dims.size(); ++i) {
      if (set.dims[i] == 0 || set.dims[i] > INT_MAX || width * set.dims[i] > INT_MAX)
        refused(path, "a row of dataset '{}' has no values or more than {} (axis {} is {})", name, INT_MAX, i,
                set.dims[i]);
      width *= set.dims[i];
    }
    if (set.dims[0] == 0 || set.dims[0] > INT64_MAX / (4 * width))
      refused(path, "dataset '{}' has {} rows", name, set.dims[0]);
    checkStorage(open, path, name, set, width * H5Tget_size(type.get()));
    if (!open.sets.empty() && set.dims[0] != open.sets[0].dims[0])
      refused(path, "dataset '{}' has {} rows, '{}' has {}; a row of one belongs to a row of the other", names_[0],
              open.sets[0].dims[0], name, set.dims[0]);
    return set;
  }

  // A dataset cannot hold more than 1032 times its stored bytes, which is the most that deflate, HDF5's strongest
  // filter, expands.
  static void checkStorage(const Open& open, const std::string& path, const std::string& name, const Dataset& set,
                           uint64_t rowBytes) {
    hsize_t size = 0;
    const auto created = handle<H5Pclose>(H5Dget_create_plist(set.id.get()));
    const H5D_layout_t layout = created.ok() ? H5Pget_layout(created.get()) : H5D_LAYOUT_ERROR;
    if (layout == H5D_LAYOUT_ERROR || H5Fget_filesize(open.file.get(), &size) < 0)
      refused(path, "dataset '{}' is stored in no known way ({})", name, hdf5Cause());
    const uint64_t most = layout == H5D_CHUNKED ? 1032 * size : size;
    const bool inside = (layout == H5D_COMPACT || layout == H5D_CONTIGUOUS || layout == H5D_CHUNKED) &&
                        H5Pget_external_count(created.get()) == 0;
    if (inside && rowBytes > most / set.dims[0])
      refused(path, "dataset '{}' claims {} rows of {} bytes in a file of {}; was it written to the end?", name,
              set.dims[0], rowBytes, size);
  }

  static std::string namesIn(const Open& open) {
    std::string all;
    const auto add = [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
      auto& names = *static_cast<std::string*>(to);
      names += (names.empty() ? "" : ", ") + std::string(name);
      return names.size() > 300;  // stops the listing
    };
    H5Literate(open.file.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &all);
    hdf5Cause();
    return all.empty() ? "none" : all;
  }

  // rows; of each dataset: axes behind the first, their sizes. All i64.
  static std::string described(const Open& open) {
    std::vector<int64_t> words = {static_cast<int64_t>(open.sets[0].dims[0])};
    for (const auto& set : open.sets) {
      words.push_back(static_cast<int64_t>(set.dims.size()) - 1);
      words.insert(words.end(), set.dims.begin() + 1, set.dims.end());
    }
    return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(int64_t)};
  }

  // Each dataset into an array of its own shape (another shape of the selection in memory makes libhdf5 go element by
  // element, which took 13 times as long on h5py's chunks), then row by row.
  std::string rows(const Open& open, const Request& r) const {
    const auto count = static_cast<size_t>(r.count), floats = static_cast<size_t>(r.floats);
    std::string out(count * floats * sizeof(float), '\0');
    size_t column = 0;
    for (size_t s = 0; s < open.sets.size(); ++s) {
      const auto& set = open.sets[s];
      std::vector<hsize_t> start(set.dims.size(), 0), taken = set.dims;
      start[0] = static_cast<hsize_t>(r.first), taken[0] = count;
      size_t width = 1;
      for (size_t i = 1; i < set.dims.size(); ++i) width *= set.dims[i];
      if (column + width > floats || start[0] + taken[0] > set.dims[0])
        refused(files_[open.number], "it was changed since the run began");
      std::vector<float> values(count * width);
      const auto from = handle<H5Sclose>(H5Dget_space(set.id.get()));
      const auto to = handle<H5Sclose>(H5Screate_simple(static_cast<int>(taken.size()), taken.data(), nullptr));
      H5Sselect_hyperslab(from.get(), H5S_SELECT_SET, start.data(), nullptr, taken.data(), nullptr);
      if (H5Dread(set.id.get(), H5T_NATIVE_FLOAT, to.get(), from.get(), H5P_DEFAULT, values.data()) < 0)
        refused(
            files_[open.number],
            "rows {} to {} of dataset '{}' cannot be read ({}); filters that are read are deflate, shuffle, fletcher32",
            r.first, r.first + r.count - 1, names_[s], hdf5Cause());
      for (size_t row = 0; row < count; ++row)
        std::memcpy(out.data() + (row * floats + column) * sizeof(float), values.data() + row * width,
                    width * sizeof(float));
      column += width;
    }
    return out;
  }

  std::vector<std::string> files_, names_;
  std::list<Open> open_;  // most recently used first
};

AnsweringChild startChild(const std::vector<std::string>& files, const std::vector<std::string>& datasets) {
  // Locked during the fork, so that the child's libhdf5 is not in the middle of a call.
  const MutexLock lock(hdf5Mutex());
  return {ChildLimits{120, int64_t{8} << 30}, [reader = std::make_shared<Reader>(files, datasets)](
                                                  std::string_view request) { return reader->answer(request); }};
}

}  // namespace

struct Hdf5Rows::State {
  std::vector<std::string> files;
  size_t datasets;
  AnsweringChild child;

  std::string ask(const Request& request) {
    const std::string& path = files[static_cast<size_t>(request.file)];
    ChildResult result = child.ask({reinterpret_cast<const char*>(&request), sizeof request});
    if (!result.died.empty())
      badData(
          "{} is damaged: libhdf5 {} while reading it (in a process of its own); take it anew from where it was made",
          path, result.died);
    return std::move(result.bytes);
  }
};

Hdf5Rows::Hdf5Rows(std::vector<std::string> files, std::vector<std::string> datasets)
    : state_(new State{files, datasets.size(), startChild(files, datasets)}) {}
Hdf5Rows::~Hdf5Rows() = default;

Hdf5Rows::File Hdf5Rows::describe(size_t file) const {
  const std::string& path = state_->files[file];
  if (!fileExists(path))
    ioError("there is no HDF5 file {}; correct the path, which begins in the working directory unless it is absolute",
            path);
  const std::string bytes = state_->ask({static_cast<int64_t>(file), 0, 0, 0});
  std::vector<int64_t> words(bytes.size() / sizeof(int64_t));
  std::memcpy(words.data(), bytes.data(), bytes.size());
  File found{words.at(0), {}};
  for (size_t at = 1; found.shapes.size() < state_->datasets; at += 1 + static_cast<size_t>(words[at]))
    found.shapes.emplace_back(words.begin() + static_cast<int64_t>(at) + 1,
                              words.begin() + static_cast<int64_t>(at) + 1 + words.at(at));
  return found;
}

std::string Hdf5Rows::read(size_t file, int64_t first, int64_t count, int64_t floats) const {
  return state_->ask({static_cast<int64_t>(file), first, count, floats});
}

}  // namespace crema::model
