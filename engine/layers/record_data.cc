// Data, MemoryData and CoSData: batches of records and their labels.
//
//   Data        data_param{source, batch_size, backend}; tops data [, label]; shapes from the first record, labels N
//   MemoryData  memory_data_param{source, batch_size, channels, height, width}; tops data, label; labels N x 1 x 1 x 1
//   CoSData     cos_data_param{source, batch_size, top...}; the first top is the image, a second one the label
// The last two are CaffeOnSpark's: their source is a database of Datum records here; data frames come through the host
// program. transform_param: crop_size, mirror, scale, mean_file, mean_value (data/transformer.h). Which records:
// data/shard.h. While scoring, every record comes once, in order, and the last batch is short.
#include <algorithm>

#include "base/file.h"
#include "data/batch_feed.h"
#include "layers/builtin.h"

namespace crema {
namespace {

// What the three types say in different words.
struct Described {
  std::string source;
  caffe::DataParameter::DB backend = caffe::DataParameter::LMDB;
  int batch = 0, prefetch = 4;
  int channels = 0, height = 0, width = 0;  // 0: from the first record
  caffe::TransformationParameter transform;
  bool wideLabels = false;
};

Described describe(const caffe::LayerParameter& p) {
  Described d;
  d.transform = p.transform_param();
  if (p.type() == "Data") {
    d.source = p.data_param().source();
    d.backend = p.data_param().backend();
    d.batch = static_cast<int>(p.data_param().batch_size());
    d.prefetch = static_cast<int>(p.data_param().prefetch());
  } else if (p.type() == "MemoryData") {
    const auto& m = p.memory_data_param();
    d.source = m.source();
    d.batch = static_cast<int>(m.batch_size());
    d.channels = static_cast<int>(m.channels()), d.height = static_cast<int>(m.height()),
    d.width = static_cast<int>(m.width());
    d.wideLabels = true;
  } else {
    const auto& c = p.cos_data_param();
    d.source = c.source();
    d.batch = static_cast<int>(c.batch_size());
    if (c.top_size()) {
      const auto& t = c.top(0);
      d.channels = static_cast<int>(t.channels()), d.height = static_cast<int>(t.height()),
      d.width = static_cast<int>(t.width());
      if (t.has_transform_param()) d.transform = t.transform_param();
    }
  }
  return d;
}

class RecordData : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {0, 0, type() == "MemoryData" ? 2 : 1, 2}; }

 protected:
  void configure(const Blobs&, const Blobs& top) override {
    described_ = describe(param_);
    if (described_.batch <= 0) invalid("batch_size must be given, positive and below 2^31");
    if (param_.data_param().rand_skip())
      invalid("rand_skip {} would let every run see other records; remove it", param_.data_param().rand_skip());
    if (type() == "CoSData" && param_.cos_data_param().top_size() != static_cast<int>(top.size()))
      invalid("cos_data_param describes {} tops, the layer has {}", param_.cos_data_param().top_size(), top.size());
    const DataOptions& o = *context().data;
    if (!o.openSources && described_.channels > 0) {
      planShape();
    } else {
      openSource(o);
    }
    setShapes(described_.batch, top);
  }
  void reshape(const Blobs&, const Blobs&) override {}

  void compute(const Blobs&, const Blobs& top) override {
    if (!source_) invalid("no records were opened; this net was built for planning only");
    const Batch& batch = context().data->scoring ? scored() : feed_->next(context().run->rank, context().run->step);
    setShapes(batch.n, top);
    withType(context().dtype, [&]<class T>() {
      std::copy(batch.data.begin(), batch.data.end(), top[0]->mutableData<T>());
      if (top.size() > 1) std::copy(batch.labels.begin(), batch.labels.end(), top[1]->mutableData<T>());
    });
  }
  void gradient(const Blobs&, const std::vector<bool>&, const Blobs&) override {}

 public:
  // Count, first and last record, and 62 between: enough to tell another set, or another state of it.
  std::string fingerprint() const override {
    if (!source_) return "";
    const int64_t size = source_->size();
    std::string all = std::to_string(size);
    for (int64_t k = 0; k < 64; ++k) {
      const Record r = source_->read((size - 1) * k / 63);
      all += sha256Hex(r.key) + sha256Hex(r.value);
    }
    return fmt::format("{} records, fingerprint {}", size, sha256Hex(all).substr(0, 12));
  }

 private:
  void openSource(const DataOptions& o) {
    std::string path = o.source.empty() ? described_.source : o.source;
    if (path.rfind("file:", 0) == 0) path.erase(0, path.rfind("file://", 0) == 0 ? 7 : 5);
    const std::string beside = o.folder.empty() || path.empty() || path[0] == '/' ? path : joinPath(o.folder, path);
    if (!fileExists(path) && fileExists(beside)) path = beside;
    source_ = crema::openSource(described_.backend, path);
    options_.batch = described_.batch;
    options_.prefetch = described_.prefetch;
    options_.seed = context().run->seed;
    options_.layer = name();
    options_.ranks = o.ranks, options_.myRanks = o.myRanks, options_.stepsPerRank = o.stepsPerRank;
    transformer_ = std::make_unique<Transformer>(described_.transform, context().phase, o.folder);
    feed_ = std::make_unique<BatchFeed>(source_, *transformer_, options_);
    record_ = feed_->shape();
    checkDescribedShape();
  }

  // MemoryData and CoSData promise a shape (before the crop); the records must keep it.
  void checkDescribedShape() const {
    if (described_.channels == 0) return;
    const int crop = static_cast<int>(described_.transform.crop_size());
    const Shape want =
        crop ? Shape{described_.channels, crop, crop} : Shape{described_.channels, described_.height, described_.width};
    if (!(want == record_))
      badData("the prototxt says {} and the records of {} become {}; correct channels, height and width, or the source",
              want.brief(), source_->describe(), record_.brief());
  }

  void planShape() {
    const int crop = static_cast<int>(described_.transform.crop_size());
    record_ =
        crop ? Shape{described_.channels, crop, crop} : Shape{described_.channels, described_.height, described_.width};
  }

  void setShapes(int n, const Blobs& top) {
    top[0]->reshape(Shape{n, record_[0], record_[1], record_[2]});
    if (top.size() > 1) top[1]->reshape(described_.wideLabels ? Shape{n, 1, 1, 1} : Shape{n});
  }

  const Batch& scored() {
    const DataOptions& o = *context().data;
    const int64_t last = o.last < 0 ? source_->size() : std::min(o.last, source_->size());
    const int64_t from = context().run->step * described_.batch, to = std::min(from + described_.batch, last);
    if (from >= to) internal("no record is left for batch {}", context().run->step);
    std::vector<int64_t> indices;
    for (int64_t i = from; i < to; ++i) indices.push_back(i);
    makeBatch(*source_, *transformer_, record_, indices, options_, context().run->step, 0, &scoredBatch_);
    return scoredBatch_;
  }

  Described described_;
  FeedOptions options_;
  std::shared_ptr<const RecordSource> source_;
  std::unique_ptr<Transformer> transformer_;
  std::unique_ptr<BatchFeed> feed_;
  Shape record_;
  Batch scoredBatch_;
};

}  // namespace

void addRecordData(LayerRegistry& r) {
  r.add<RecordData>("Data", "records of a database");
  r.add<RecordData>("MemoryData", "records that the host program names");
  r.add<RecordData>("CoSData", "CaffeOnSpark's rows");
}

}  // namespace crema
