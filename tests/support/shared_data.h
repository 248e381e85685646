// Where the real data and models are, when they are there. A test that cannot find them prints what it skipped.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

namespace crema::test {

// The path of `name` inside the shared data folder ($CREMA_SHARED_DATA, else ../shared/data beside the checkout).
inline std::optional<std::string> sharedData(const std::string& name) {
  namespace fs = std::filesystem;
  const char* folder = std::getenv("CREMA_SHARED_DATA");
  const fs::path root = folder ? fs::path(folder) : fs::path(CREMA_SOURCE_DIR) / ".." / "shared" / "data";
  if (fs::exists(root / name)) return fs::canonical(root / name).string();
  std::cout << "SKIPPED PART: " << name << " is not here (set CREMA_SHARED_DATA)\n";
  return std::nullopt;
}

// The folder of MNIST's records that quickstart fills (train_lmdb, test_lmdb): $CREMA_DATA, else data/mnist.
inline std::optional<std::string> mnist() {
  const char* folder = std::getenv("CREMA_DATA");
  const std::string path = folder ? folder : CREMA_SOURCE_DIR "/data/mnist";
  if (std::filesystem::exists(path + "/train_lmdb") && std::filesystem::exists(path + "/test_lmdb")) return path;
  return std::nullopt;
}

// A folder of its own for one test, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "crema-test-XXXXXX").string();
    if (!mkdtemp(pattern.data())) ADD_FAILURE() << "cannot make " << pattern;
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace crema::test
