// The rows that a host program sends after its Job, handed to the sources that the data layers read.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/socket.h"
#include "data/row_window.h"
#include "data/staged_source.h"
#include "wire.pb.h"

namespace crema {

class HostRows {
 public:
  // Training: both phases are kept on disk. Scoring: the TEST rows are a window. Absent feeds stay null.
  HostRows(const wire::Job& job, bool scoring, const Interrupt* interrupt);

  std::shared_ptr<StagedSource> train, test;
  std::shared_ptr<RowWindow> window;
  std::atomic<int64_t> arrived{0};  // rows so far, as a sign of life

  bool wanted() const { return train || test || window; }
  void accept(const wire::Input& input);  // kData when it contradicts itself or the Job
  void fail(const Error& error);

 private:
  void append(bool test, const wire::RowBatch& batch);
};

}  // namespace crema
