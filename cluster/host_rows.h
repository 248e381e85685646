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
#include "layers/layer.h"
#include "wire.pb.h"

namespace crema::cluster {

// Signs of life of the host, counted.
struct HostSigns {
  std::atomic<int64_t> arrived{0};    // rows, ranges and words that they are being prepared
  std::atomic<int64_t> preparing{0};  // these words alone
};

// Where the records of one phase are: rows of the host, a database that it reads, or a path; "": as the prototxt says.
layers::DataSource sourceOf(const std::shared_ptr<const data::RecordSource>& rows,
                            const std::shared_ptr<const data::RecordSource>& records, const std::string& path);

class HostRows {
 public:
  // Training: both phases are kept on disk. Scoring: the TEST rows are a window. Absent feeds stay null. emit: asks the
  // host for ranges.
  HostRows(const wire::Job& job, bool scoring, const std::function<void(const wire::Event&)>& emit,
           const Interrupt* interrupt);

  std::shared_ptr<data::StagedSource> train, test;
  std::shared_ptr<data::RowWindow> window;
  std::shared_ptr<data::RemoteFile> trainFile, testFile;
  // The databases in these files, by the index that the Job carries; null when there is none.
  std::shared_ptr<const data::RecordSource> trainRecords, testRecords;
  HostSigns signs;
  std::atomic<int64_t> published{0};                           // snapshots that the host has put into their places
  std::atomic<bool> snapshotWished{false}, stopWished{false};  // whoever takes one sets it back
  std::atomic<bool> hostFailed{false};  // the interrupt was raised by what the host said of itself

  void accept(const wire::Input& input);  // kData when it contradicts itself or the Job
  void fail(const Error& error);
  // Until a row has come, or the word that there is none: the host may sort for hours. The interrupt's error ends it.
  void waitForRows(const Interrupt& interrupt) const;

 private:
  void append(bool test, const wire::RowBatch& batch);

  std::atomic<bool> rowsCame_{false};
};

}  // namespace crema::cluster
