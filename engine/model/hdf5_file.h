// HDF5 files in memory, as far as Caffe's models and snapshots need them.
//
// Files are read from and written to bytes, so that reading needs no file lock and files appear whole (base/file.h).
// libhdf5 is not thread-safe: callers hold hdf5Mutex() while a reader or writer lives. Only hard links and values
// inside the file are followed: a model from elsewhere must not make us open other files.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "caffe.pb.h"

namespace crema::model {

Mutex& hdf5Mutex();
bool isHdf5(const std::string& path);  // by signature; false when the file cannot be read

// Closes what an HDF5 function opened.
class Hdf5Handle {
 public:
  using Closer = int (*)(int64_t);
  Hdf5Handle(int64_t id, Closer close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&&) = delete;
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }
  int64_t get() const { return id_; }
  bool ok() const { return id_ >= 0; }

 private:
  int64_t id_;
  Closer close_;
};

// Throws kData with file, path inside it, cause and remedy for anything unexpected.
class Hdf5Reader {
 public:
  struct Entry {
    std::string name;
    bool group;  // else a dataset
  };
  Hdf5Reader(std::string_view bytes, std::string file);

  std::vector<Entry> list(const std::string& group) const;  // in alphabetical order
  bool has(const std::string& path) const;                  // false also where a group of the path is missing
  // float values as `data`, double as `double_data`, and the shape. Integers, which Caffe converts, are refused: no
  // Caffe writes them.
  void readBlob(const std::string& path, caffe::BlobProto* blob) const;
  int readInt(const std::string& path) const;  // one integer
  std::string readString(const std::string& path) const;

 private:
  Hdf5Handle dataset(const std::string& path) const;
  void checkStorage(const std::string& path, int64_t dataset, uint64_t bytes) const;
  std::string file_;
  uint64_t size_;
  Hdf5Handle id_;
};

// The bytes are the same for the same contents: no times are stored.
class Hdf5Writer {
 public:
  explicit Hdf5Writer(std::string file);  // the name is for messages
  void group(const std::string& path);    // creates a group and those above it, unless it exists
  void blob(const std::string& path, const caffe::BlobProto& blob, bool diff = false);
  void integer(const std::string& path, int value);
  void string(const std::string& path, const std::string& value);
  std::string finish();

 private:
  void dataset(const std::string& path, int64_t type, int64_t space, const void* values);
  std::string file_;
  Hdf5Handle id_;
};

}  // namespace crema::model
