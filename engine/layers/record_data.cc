// Data, MemoryData and CoSData: batches of records, one sample of each record in each top.
//
//   Data        data_param{source, batch_size, backend}; tops data [, label]; shapes from the first record, labels N.
//               With batch_size 1 and no crop_size each batch has its record's shape. transform_param:
//               data/transformer.h. An image that cannot be decoded is an error, as in Caffe. rand_skip does nothing.
//   MemoryData  memory_data_param{source, batch_size, channels, height, width}; tops data, label; labels are N when the
//               net is made and N x 1 x 1 x 1 from its first forward, as in Caffe
//   CoSData     cos_data_param{batch_size, shuffle, top...}; one top per entry, N x its first sample_num_axes of
//   (channels,
//               height, width), or (channels, N) with transpose; each image top has its own transform_param
// The last two are CaffeOnSpark's: rows of a host program, or for MemoryData a database of Datum records. Their images
// that cannot be decoded are passed over, named in the log and counted. Which records: data/shard.h. While scoring,
// every record comes once, in order, and the last batch is short.
#include <algorithm>

#include "base/file.h"
#include "base/log.h"
#include "layers/builtin.h"
#include "layers/fed_layer.h"

namespace crema {
namespace {

class RecordData : public FedLayer {
 public:
  using FedLayer::FedLayer;
  Arity arity() const override { return {0, 0, type() == "MemoryData" ? 2 : 1, type() == "CoSData" ? -1 : 2}; }

 protected:
  void configure(const Blobs&, const Blobs& top) override {
    setBatch(type() == "Data"         ? param_.data_param().batch_size()
             : type() == "MemoryData" ? param_.memory_data_param().batch_size()
                                      : param_.cos_data_param().batch_size());
    if (param_.data_param().rand_skip())
      LOG_WARNING("{}: rand_skip {} is ignored, as Caffe 1.0 does; reading begins at the first record", label(),
                  param_.data_param().rand_skip());
    if (type() == "CoSData" && param_.cos_data_param().top_size() != static_cast<int>(top.size()))
      invalid("cos_data_param describes {} tops, the layer has {}", param_.cos_data_param().top_size(), top.size());
    const DataOptions& o = *context().data;
    if (o.openSources || type() == "Data") openSource(o);
    maker_.samples = makeSamples(o, top.size() > 1);
    FeedOptions& f = maker_.options;
    f.skipping = type() != "Data";
    f.shuffle = type() == "CoSData" && param_.cos_data_param().shuffle() && training();
    begin(top);
  }

  void compute(const Blobs& bottom, const Blobs& top) override {
    forwarded_ = true;
    if (maker_.source) return FedLayer::compute(bottom, top);
    take(top);
  }

  bool transposed(size_t top) const override {
    return type() == "CoSData" && param_.cos_data_param().top(static_cast<int>(top)).transpose();
  }
  std::vector<int> dims(size_t top, const Shape& sample, int n) const override {
    if (type() == "MemoryData" && top == 1 && forwarded_) return {n, 1, 1, 1};
    return FedLayer::dims(top, sample, n);
  }

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
    image.varies = type() == "Data" && batch_ == 1 && !image.transform.crop_size();
    return inside([&] { return "in " + maker_.source->describe(); },
                  [&] { return datumSamples(image, label, *maker_.source); });
  }

  // Blobs of the host, one per top: batch_size samples, or more, which are left alone as CaffeOnSpark does.
  void take(const Blobs& top) {
    const auto* given = context().data->given;
    if (!given) invalid("no records were opened; this net was built for planning only");
    if (given->size() != top.size()) invalid("{} blob(s) are given, this layer has {} tops", given->size(), top.size());
    if (type() == "MemoryData") top[1]->reshape({batch_, 1, 1, 1});
    for (size_t t = 0; t < top.size(); ++t) {
      const Shape &have = (*given)[t]->shape(), &want = top[t]->shape();
      const bool fits =
          transposed(t) ? have == want : have.axes() > 0 && have[0] >= batch_ && have.count(1) == want.count(1);
      if (!fits) invalid("blob {} is {}, this layer takes {} for top {}", t, have.brief(), want.brief(), t);
      withType(context().dtype,
               [&]<class T>() { std::copy_n((*given)[t]->data<float>(), want.count(), top[t]->mutableData<T>()); });
    }
  }

  bool forwarded_ = false;
};

}  // namespace

void addRecordData(LayerRegistry& r) {
  r.add<RecordData>("Data", "records of a database");
  r.add<RecordData>("MemoryData", "records that the host program names");
  r.add<RecordData>("CoSData", "CaffeOnSpark's rows");
}

}  // namespace crema
