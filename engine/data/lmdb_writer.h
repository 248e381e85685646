// Writes an LMDB of records as Caffe's tools do: one commit per 1000, the map doubled when it is full. Until finish()
// it has a temporary name (base/temporary.h), so that an interrupted conversion never looks like a complete database.
#pragma once
#include <memory>
#include <string>

#include "data/record_writer.h"

namespace crema::data {

class LmdbWriter : public RecordWriter {
 public:
  explicit LmdbWriter(const std::string& path);  // creates the folder; kIo when a database exists already
  ~LmdbWriter() override;                        // without finish(): what was written is removed
  void put(std::string_view key, std::string_view value) override;
  void finish() override;  // commits the rest, flushes, renames
  int64_t written() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace crema::data
