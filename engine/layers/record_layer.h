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
  // Text that identifies the records, and what mean_files hold: their count, and XXH3 of all of a set of up to 64 MiB, of
  // larger ones of some 16 MiB of records spread over it, of 64 at least: enough to notice another set or version. "" without
  // a source. Rows of a host are only partly here, so the host compares those.
  const std::string& fingerprint() const;
  // What workers compare before training: that, and with context().data->compareAll the sum of all records of any set, which
  // reads each once.
  std::string comparison() const;
  // As data::TestSharding defines it, in phase TEST.
  int64_t testCycle() const { return maker_.source ? maker_.testCycle() : 0; }
  // The run goes on with other ranks here, or other workers: those of context().data, which has them already.
  void assign();
  double waited() const { return feed_ ? feed_->waited() : 0; }  // seconds, for batches that were not ready
  // Those that could not be decoded since the net was built.
  int64_t skippedRecords() const { return maker_.skipped->count(); }

  // The ids of the last pass's records while scoring (fewer than batch_size at the end, or where some could not be
  // decoded); and an item's name for messages, "" for none.
  const std::vector<std::string>& ids() const { return scored_.ids; }
  std::string recordOf(int item) const;
  bool renewsTops() const override { return true; }

 protected:
  void reshape(const Blobs&, const Blobs&) override {}
  void compute(const Blobs&, const Blobs& top) override;
  void gradient(const Blobs&, const std::vector<bool>&, const Blobs&) override {}

  void setBatch(int64_t size);  // invalid() unless it is positive and an int
  // The path of the records: the run's, or else `written` in the layer; relative paths start in the run's folder.
  std::string sourcePath(const std::string& written, const char* missing) const;  // invalid(`missing`) without either
  std::string databasePath(const std::string& written) const;                     // may be a file: URI
  // Gives the tops the shapes of maker_.samples. With a source, also copies the run's settings to maker_.options (the
  // caller sets the rest) and creates the feed.
  void begin(const Blobs& top);
  // For blobs of the host in place of records: takes the first batch_size samples of each.
  void takeBlobs(const Blobs& top);
  virtual int prefetch() const { return static_cast<int>(param_.data_param().prefetch()); }  // batches made ahead
  virtual bool transposed(size_t /*top*/) const { return false; }
  virtual std::vector<int> dims(size_t top, const Shape& sample, int n) const;
  struct Identity {
    uint64_t sum;  // changes whenever the record does
    int64_t bytes;
  };
  virtual Identity identity(const data::Record& record) const;

  int batch_ = 0;
  data::BatchMaker maker_;

 private:
  bool readsHere() const { return !std::holds_alternative<FromHost>(context().data->source); }
  bool scoring() const { return context().data->use == PassUse::kScoring; }
  std::string sumOfRecords(int64_t whole) const;  // up to so many bytes of all, else of a sample
  std::string sumOfMeans() const;
  const data::Batch& scored();
  const data::Batch& nextOfFeed();
  void setShapes(int n, const std::vector<Shape>& samples, const Blobs& top);

  mutable std::string fingerprint_;  // "" until somebody asks
  std::unique_ptr<data::BatchFeed> feed_;
  data::Batch scored_;
  const data::Batch* current_ = nullptr;
};

}  // namespace crema::layers
