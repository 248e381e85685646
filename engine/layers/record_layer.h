// A layer that brings records into a net: batches that are made ahead of time (data/batch_feed.h), or, while scoring,
// the records in order, each once, the last batch short.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/batch_feed.h"
#include "layers/layer.h"

namespace crema::layers {

class RecordLayer : public Layer {
 public:
  using Layer::Layer;
  int batchSize() const { return batch_; }  // records of a full batch
  int64_t records() const { return maker_.source ? maker_.source->size() : 0; }
  // Of the records, in words: count, first and last record, and 62 between, enough to tell another set, or another
  // state of it; "" without a source. What comes from a host is here in part only, and the host compares it.
  std::string fingerprint() const;
  int64_t testCycle() const { return maker_.source ? maker_.testCycle() : 0; }  // data::TestDealing's, in phase TEST
  int64_t skippedRecords() const { return maker_.skipped->count(); }  // not decodable, since the net was built

  // Of the last pass: its records' ids while scoring (fewer than batch_size at the end, or where some could not be
  // decoded), and an item of it for messages, "" where there is none.
  const std::vector<std::string>& ids() const { return scored_.ids; }
  std::string recordOf(int item) const;

 protected:
  void reshape(const Blobs&, const Blobs&) override {}
  void compute(const Blobs&, const Blobs& top) override;
  void gradient(const Blobs&, const std::vector<bool>&, const Blobs&) override {}

  void setBatch(int64_t size);  // invalid() unless it is positive and an int
  // Where the records are: what the run says, or what is `written`; relative paths start in the run's folder.
  std::string sourcePath(const std::string& written, const char* missing) const;  // invalid(`missing`) without either
  std::string databasePath(const std::string& written) const;                     // may be a file: URI
  // The tops get the shapes of maker_.samples; where there is a source, its options get what the run says (the rest is
  // the caller's) and the feed is ready.
  void begin(const Blobs& top);
  // Where the host gives blobs instead of records: batch_size samples of each, or more, which are left alone.
  void takeBlobs(const Blobs& top);
  virtual bool transposed(size_t /*top*/) const { return false; }
  virtual std::vector<int> dims(size_t top, const Shape& sample, int n) const;
  virtual std::string identity(const data::Record& record) const;  // what makes it another record when it changes

  int batch_ = 0;
  data::BatchMaker maker_;

 private:
  bool scoring() const { return context().data->use == PassUse::kScoring; }
  const data::Batch& scored();
  void setShapes(int n, const std::vector<Shape>& samples, const Blobs& top);

  std::unique_ptr<data::BatchFeed> feed_;
  data::Batch scored_;
  const data::Batch* current_ = nullptr;
};

}  // namespace crema::layers
