// A file's bytes in memory, read-only, without copying; released at the end. The file must not shrink meanwhile.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace crema {

class MappedFile {
 public:
  explicit MappedFile(const std::string& path);  // ioError names the path and why
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace crema
