// Data, MemoryData and CoSData: batches of records, one sample of each record in each top.
//
//   Data        data_param{source, batch_size, backend}; tops data [, label]; shapes from the first record, labels N.
//               transform_param: data/transformer.h. An image that cannot be decoded is an error, as in Caffe.
//   MemoryData  memory_data_param{source, batch_size, channels, height, width}; tops data, label; labels N x 1 x 1 x 1
//   CoSData     cos_data_param{batch_size, shuffle, top...}; one top per entry, N x its first sample_num_axes of
//   (channels,
//               height, width), or (channels, N) with transpose; each image top has its own transform_param
// The last two are CaffeOnSpark's: rows of a host program, or for MemoryData a database of Datum records. Their images
// that cannot be decoded are passed over, named in the log and counted. Which records: data/shard.h. While scoring,
// every record comes once, in order, and the last batch is short.
#include <algorithm>

#include "base/file.h"
#include "data/batch_feed.h"
#include "layers/builtin.h"

namespace crema {
namespace {

class RecordData : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {0, 0, type() == "MemoryData" ? 2 : 1, type() == "CoSData" ? -1 : 2}; }

  // What comes from a host is here in part only, and the host compares it.
  std::string fingerprint() const override {
    if (!maker_.source) return "";
    if (context().data->rows || context().data->records) return fmt::format("{} records", maker_.source->size());
    return fingerprintOf(*maker_.source);
  }
  const std::vector<int64_t>* scoredRecords() const override { return &scored_.records; }
  int batchSize() const override { return batch_; }
  int64_t testCycle() const override { return maker_.source ? maker_.testCycle() : 0; }
  int64_t skippedRecords() const override { return maker_.skipped->count(); }

 protected:
  void configure(const Blobs&, const Blobs& top) override {
    batch_ = static_cast<int>(type() == "Data"         ? param_.data_param().batch_size()
                              : type() == "MemoryData" ? param_.memory_data_param().batch_size()
                                                       : param_.cos_data_param().batch_size());
    if (batch_ <= 0) invalid("batch_size must be given, positive and below 2^31");
    if (param_.data_param().rand_skip())
      invalid("rand_skip {} would let every run see other records; remove it", param_.data_param().rand_skip());
    if (type() == "CoSData" && param_.cos_data_param().top_size() != static_cast<int>(top.size()))
      invalid("cos_data_param describes {} tops, the layer has {}", param_.cos_data_param().top_size(), top.size());
    const DataOptions& o = *context().data;
    if (o.openSources || type() == "Data") openSource(o);
    maker_.samples = makeSamples(o, top.size() > 1);
    if (maker_.source) prepare(o);
    setShapes(batch_, top);
  }
  void reshape(const Blobs&, const Blobs&) override {}

  void compute(const Blobs&, const Blobs& top) override {
    if (!maker_.source) return take(top);
    const Batch& batch = context().data->scoring ? scored() : feed_->next(context().run->rank, context().run->step);
    if (batch.n == 0) return;  // all were passed over: what the net computes now belongs to no record
    setShapes(batch.n, top);
    withType(context().dtype, [&]<class T>() {
      for (size_t t = 0; t < top.size(); ++t) copy(batch.tops[t], batch.n, transposed(t), top[t]->mutableData<T>());
    });
  }
  void gradient(const Blobs&, const std::vector<bool>&, const Blobs&) override {}

 private:
  void openSource(const DataOptions& o) {
    if (o.rows || o.records) {
      maker_.source = o.rows ? o.rows : o.records;
      return;
    }
    if (type() == "CoSData")
      invalid("CoSData takes the rows of a host program (a Spark DataFrame); a database is read by Data or MemoryData");
    const std::string written = type() == "Data" ? param_.data_param().source() : param_.memory_data_param().source();
    std::string path = o.source.empty() ? written : o.source;
    if (path.rfind("file:", 0) == 0) path.erase(0, path.rfind("file://", 0) == 0 ? 7 : 5);
    maker_.source = crema::openSource(type() == "Data" ? param_.data_param().backend() : caffe::DataParameter::LMDB,
                                      resolvePath(path, o.folder));
  }

  std::shared_ptr<const SampleMaker> makeSamples(const DataOptions& o, bool label) const {
    if (type() == "CoSData") return cosRowSamples(param_.cos_data_param(), context().phase, o.folder, o.resize);
    ImageOptions image;
    image.transform = param_.transform_param();
    image.phase = context().phase, image.folder = o.folder, image.resize = o.resize;
    if (type() == "MemoryData") {
      const auto& m = param_.memory_data_param();
      image.channels = static_cast<int>(m.channels()), image.height = static_cast<int>(m.height()),
      image.width = static_cast<int>(m.width());
      if (image.channels <= 0 || image.height <= 0 || image.width <= 0)
        invalid("channels, height and width of memory_data_param must be given and positive, not {}x{}x{}",
                image.channels, image.height, image.width);
      if (o.rows || !o.openSources) return imageRowSamples(image);
    }
    return inside([&] { return "in " + maker_.source->describe(); },
                  [&] { return datumSamples(image, label, *maker_.source); });
  }

  void prepare(const DataOptions& o) {
    FeedOptions& f = maker_.options;
    f.batch = batch_;
    f.prefetch = type() == "Data" ? static_cast<int>(param_.data_param().prefetch()) : 4;
    f.seed = context().run->seed;
    f.layer = name();
    f.ranks = o.ranks, f.myRanks = o.myRanks, f.stepsPerRank = o.stepsPerRank;
    f.test = context().phase == caffe::TEST, f.workers = o.testWorkers;
    f.skipping = type() != "Data";
    f.shuffle = type() == "CoSData" && param_.cos_data_param().shuffle() && context().phase == caffe::TRAIN;
    if (!o.scoring) feed_ = std::make_unique<BatchFeed>(maker_);
  }

  bool transposed(size_t top) const {
    return type() == "CoSData" && param_.cos_data_param().top(static_cast<int>(top)).transpose();
  }

  template <class T>
  static void copy(const std::vector<float>& from, int n, bool transpose, T* to) {
    if (!transpose || n == 0) {
      std::copy(from.begin(), from.end(), to);
      return;
    }
    const size_t rows = static_cast<size_t>(n), width = from.size() / rows;
    for (size_t i = 0; i < rows; ++i)
      for (size_t k = 0; k < width; ++k) to[k * rows + i] = static_cast<T>(from[i * width + k]);
  }

  void setShapes(int n, const Blobs& top) {
    for (size_t t = 0; t < top.size(); ++t) {
      const Shape& sample = maker_.samples->shape(t);
      std::vector<int> dims = {n};
      dims.insert(dims.end(), sample.dims().begin(), sample.dims().end());
      if (transposed(t)) std::swap(dims[0], dims[1]);
      if (type() == "MemoryData" && t == 1) dims = {n, 1, 1, 1};
      top[t]->reshape(Shape(dims));
    }
  }

  // Blobs of the host, one per top: batch_size samples, or more, which are left alone as CaffeOnSpark does.
  void take(const Blobs& top) {
    const auto* given = context().data->given;
    if (!given) invalid("no records were opened; this net was built for planning only");
    if (given->size() != top.size()) invalid("{} blob(s) are given, this layer has {} tops", given->size(), top.size());
    for (size_t t = 0; t < top.size(); ++t) {
      const Shape &have = (*given)[t]->shape(), &want = top[t]->shape();
      const bool fits =
          transposed(t) ? have == want : have.axes() > 0 && have[0] >= batch_ && have.count(1) == want.count(1);
      if (!fits) invalid("blob {} is {}, this layer takes {} for top {}", t, have.brief(), want.brief(), t);
      withType(context().dtype,
               [&]<class T>() { std::copy_n((*given)[t]->data<float>(), want.count(), top[t]->mutableData<T>()); });
    }
  }

  const Batch& scored() {
    const int64_t from = context().run->step * batch_;
    const int64_t last =
        context().data->last < 0 ? maker_.source->size() : std::min(context().data->last, maker_.source->size());
    const int64_t to = std::min(from + batch_, last);
    if (from >= to) internal("no record is left for batch {}", context().run->step);
    maker_.score(from, to, context().run->step, &scored_);
    return scored_;
  }

  int batch_ = 0;
  BatchMaker maker_;
  std::unique_ptr<BatchFeed> feed_;
  Batch scored_;
};

}  // namespace

void addRecordData(LayerRegistry& r) {
  r.add<RecordData>("Data", "records of a database");
  r.add<RecordData>("MemoryData", "records that the host program names");
  r.add<RecordData>("CoSData", "CaffeOnSpark's rows");
}

}  // namespace crema
