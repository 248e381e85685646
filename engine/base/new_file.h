// A file that is written piece by piece and appears whole at its path, or not at all.
//
// It is unnamed (O_TMPFILE) until it is whole; where `path` exists, it then gets a temporary name and is renamed, as no
// call links over an existing file. A writer that is killed leaves nothing. Where the file system has no unnamed files
// it has a temporary name from the start (temporary.h), which a later run clears. What is written goes to the disk
// every 64 MiB, so that the last flush does not take long whatever the size.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace crema {

class [[nodiscard]] NewFile {
 public:
  // ioError when nothing can be written beside `path`. expected: bytes, for messages; unnamed: false takes a temporary
  // name from the start.
  explicit NewFile(std::string path, uint64_t expected = 0, bool unnamed = true);
  ~NewFile();  // without commit(): nothing is left behind
  NewFile(const NewFile&) = delete;
  void write(std::string_view bytes);  // ioError names the path, the cause (a full disk included) and the remedy
  void commit();                       // flushed to disk, then at the path, over what stood there
  uint64_t size() const { return size_; }

 private:
  void openNamed();
  void copyToNamed();
  [[nodiscard]] bool giveName(const std::string& name) const;
  [[noreturn]] void refused() const;

  std::string path_, temporary_;  // temporary_: the name that it has; empty while it is unnamed
  uint64_t expected_, size_ = 0, flushed_ = 0;
  int fd_ = -1;
};

}  // namespace crema
