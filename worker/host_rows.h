// What a host program sends after its Job, handed to the sources that the data layers read: rows, and ranges of files
// that only the host can open.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/socket.h"
#include "cluster/host_activity.h"
#include "data/remote_file.h"
#include "data/row_window.h"
#include "data/staged_source.h"
#include "layers/layer.h"
#include "wire.pb.h"

namespace crema::worker {

// Where the records of one phase come from: rows of the host, a database that it reads for us, or a path; with path ""
// the prototxt's source.
layers::DataSource sourceOf(const std::shared_ptr<const data::RecordSource>& rows,
                            const std::shared_ptr<const data::RecordSource>& records, const std::string& path);

class HostRows {
 public:
  // Training: rows of both phases are staged on disk. Scoring: TEST rows wait in memory (data/row_window.h). What the
  // Job does not announce stays null. emit: sends the host a request for a range of a file.
  HostRows(const wire::Job& job, bool scoring, const std::function<void(const wire::Event&)>& emit,
           const Interrupt* interrupt);

  std::shared_ptr<data::StagedSource> train, test;
  std::shared_ptr<data::RowWindow> window;
  std::shared_ptr<data::RemoteFile> trainFile, testFile;
  // The LMDBs in these files, read by the index in the Job; null without an index.
  std::shared_ptr<const data::RecordSource> trainRecords, testRecords;
  cluster::HostActivity activity;
  std::atomic<int64_t> published{0};                                 // snapshots that the host has published
  std::atomic<bool> snapshotRequested{false}, stopRequested{false};  // the reader resets them
  std::atomic<int64_t> snapshotsAsked{0};                            // so far
  std::atomic<bool> hostFailed{false};                               // the host reported an error of its own

  void accept(const wire::Input& input);  // throws kData when it contradicts itself or the Job
  void fail(const Error& error);
  // Waits until the first rows, or End, have come: a host may sort for hours. Throws the interrupt's error.
  void waitForRows(const Interrupt& interrupt) const;

 private:
  void append(bool test, const wire::RowBatch& batch);

  std::atomic<bool> rowsCame_{false};
};

}  // namespace crema::worker
