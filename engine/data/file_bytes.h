// Interface for ranges of a file's bytes: in memory, or fetched from the host.
#pragma once
#include <cstdint>
#include <string_view>

#include "base/mapped_file.h"

namespace crema::data {

class FileBytes {
 public:
  virtual ~FileBytes() = default;
  virtual uint64_t size() const = 0;
  // Bytes [offset, offset + length), which must lie inside the file; valid while this object lives. Any thread. May
  // wait for them; throws when they cannot be read.
  virtual std::string_view range(uint64_t offset, uint64_t length) const = 0;
};

// A string or a mapped file.
class MemoryBytes : public FileBytes {
 public:
  explicit MemoryBytes(std::string_view bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  std::string_view range(uint64_t offset, uint64_t length) const override { return bytes_.substr(offset, length); }

 private:
  std::string_view bytes_;
};

class LocalFileBytes : public FileBytes {
 public:
  explicit LocalFileBytes(const std::string& path) : file_(path) {}
  uint64_t size() const override { return file_.bytes().size(); }
  std::string_view range(uint64_t offset, uint64_t length) const override {
    file_.touched(length);
    return file_.bytes().substr(offset, length);
  }

 private:
  MappedFile file_;
};

}  // namespace crema::data
