// A file that is written piece by piece and appears whole at its path, or not at all. Cost: one copy through the page
// cache; what is written goes to the disk every 64 MiB, so that the last flush does not take long whatever the size.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace crema {

class NewFile {
 public:
  explicit NewFile(std::string path);  // ioError when nothing can be written beside `path`
  ~NewFile();                          // without commit(): nothing is left behind
  NewFile(const NewFile&) = delete;
  void write(std::string_view bytes);  // ioError names the path, the cause and the remedy
  void commit();                       // flushed to disk, then renamed over the path
  uint64_t size() const { return size_; }

 private:
  [[noreturn]] void refused();

  std::string path_, part_;
  int fd_ = -1;
  uint64_t size_ = 0, flushed_ = 0;
};

}  // namespace crema
