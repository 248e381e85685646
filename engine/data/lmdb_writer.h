// Writes an LMDB of records as Caffe's tools do: one commit per 1000, the map doubled when it is full.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace crema {

class LmdbWriter {
 public:
  explicit LmdbWriter(const std::string& path);  // makes the folder; kIo when there is a database already
  ~LmdbWriter();                                 // without finish(): what was committed stays
  LmdbWriter(const LmdbWriter&) = delete;
  void put(std::string_view key, std::string_view value);
  void finish();  // commits the rest
  int64_t written() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace crema
