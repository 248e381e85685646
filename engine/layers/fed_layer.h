// What layers that bring records into a net have in common: their batches come from a feed that makes them ahead of
// time (data/batch_feed.h), or, while scoring, are the records in order, each once, the last batch short.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/batch_feed.h"
#include "layers/layer.h"

namespace crema {

class FedLayer : public Layer {
 public:
  using Layer::Layer;
  // Count, first and last record, and 62 between: enough to tell another set, or another state of it. What comes
  // from a host is here in part only, and the host compares it.
  std::string fingerprint() const override;
  const std::vector<int64_t>* scoredRecords() const override { return &scored_.records; }
  std::string recordOf(int item) const override;
  int batchSize() const override { return batch_; }
  int64_t testCycle() const override { return maker_.source ? maker_.testCycle() : 0; }
  int64_t skippedRecords() const override { return maker_.skipped->count(); }

 protected:
  void reshape(const Blobs&, const Blobs&) override {}
  void compute(const Blobs&, const Blobs& top) override;
  void gradient(const Blobs&, const std::vector<bool>&, const Blobs&) override {}

  void setBatch(int64_t size);  // invalid() unless it is positive and an int
  // Where the records are: what the run says, or what is `written`; invalid(`missing`) without either.
  std::string sourcePath(const std::string& written, const char* missing) const;
  // The tops get the shapes of maker_.samples; where there is a source, its options get what the run says (the rest is
  // the caller's) and the feed is ready.
  void begin(const Blobs& top);
  virtual bool transposed(size_t /*top*/) const { return false; }
  virtual std::vector<int> dims(size_t top, const Shape& sample, int n) const;
  virtual std::string identity(const Record& record) const;  // what makes it another record when it changes

  int batch_ = 0;
  BatchMaker maker_;

 private:
  const Batch& scored();
  void setShapes(int n, const std::vector<Shape>& samples, const Blobs& top);

  std::unique_ptr<BatchFeed> feed_;
  Batch scored_;
  const Batch* current_ = nullptr;
};

}  // namespace crema
