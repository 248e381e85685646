// Writes an LMDB of records as Caffe's tools do: one commit per 1000, the map doubled when it is full. Until finish()
// it lies beside its place (base/temporary.h): an interrupted conversion never looks like a whole database.
#pragma once
#include <memory>
#include <string>

#include "data/record_writer.h"

namespace crema::data {

class LmdbWriter : public RecordWriter {
 public:
  explicit LmdbWriter(const std::string& path);  // makes the folder; kIo when there is a database already
  ~LmdbWriter() override;                        // without finish(): what was written is removed
  void put(std::string_view key, std::string_view value) override;
  void finish() override;  // commits the rest, flushes, renames
  int64_t written() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace crema::data
