// What a host program sends after its Job, handed to the sources that the data layers read: rows, and ranges of files
// that only the host can open.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/socket.h"
#include "data/remote_file.h"
#include "data/row_window.h"
#include "data/staged_source.h"
#include "wire.pb.h"

namespace crema {

class HostRows {
 public:
  // Training: both phases are kept on disk. Scoring: the TEST rows are a window. Absent feeds stay null. emit: asks the
  // host for ranges.
  HostRows(const wire::Job& job, bool scoring, const std::function<void(const wire::Event&)>& emit,
           const Interrupt* interrupt);

  std::shared_ptr<StagedSource> train, test;
  std::shared_ptr<RowWindow> window;
  std::shared_ptr<RemoteFile> trainFile, testFile;
  // The databases in these files, by the index that the Job carries; null when there is none.
  std::shared_ptr<const RecordSource> trainRecords, testRecords;
  std::atomic<int64_t> arrived{0};  // rows so far, as a sign of life

  void accept(const wire::Input& input);  // kData when it contradicts itself or the Job
  void fail(const Error& error);

 private:
  void append(bool test, const wire::RowBatch& batch);
};

}  // namespace crema
