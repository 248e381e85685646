// MemoryData: rows or blobs of a host program, or a database of Datum records. Tops data, N x C x H x W, and label, N
// when the net is made and N x 1 x 1 x 1 from its first forward, as in Caffe.
//
// Options: memory_data_param{source, batch_size, channels, height, width}; transform_param: data/transformer.h.
// `source` is CaffeOnSpark's, a database. Images that cannot be decoded are skipped, logged and counted. Which records:
// data/shard.h; while scoring every record comes once, in order, and the last batch is short.
#include "layers/builtin.h"
#include "layers/record_layer.h"

namespace crema::layers {
namespace {

class MemoryData : public RecordLayer {
 public:
  using RecordLayer::RecordLayer;
  Arity arity() const override { return {0, 0, 2, 2}; }

 protected:
  void configure(const Blobs&, const Blobs& top) override {
    setBatch(param_.memory_data_param().batch_size());
    const DataOptions& o = *context().data;
    const auto* host = std::get_if<FromHost>(&o.source);
    if (host)
      maker_.source = host->records;
    else if (o.opensSources())
      maker_.source = data::openSource(caffe::DataParameter::LMDB, databasePath(param_.memory_data_param().source()));
    const bool database = host ? !host->rows : o.opensSources();
    maker_.samples = makeSamples(database);
    maker_.options.skipping = true;
    begin(top);
  }

  void compute(const Blobs& bottom, const Blobs& top) override {
    forwarded_ = true;
    if (maker_.source) return RecordLayer::compute(bottom, top);
    top[1]->reshape({batch_, 1, 1, 1});
    takeBlobs(top);
  }

  std::vector<int> dims(size_t top, const Shape& sample, int n) const override {
    return top == 1 && forwarded_ ? std::vector<int>{n, 1, 1, 1} : RecordLayer::dims(top, sample, n);
  }

 private:
  std::shared_ptr<const data::SampleMaker> makeSamples(bool database) const {
    const auto& m = param_.memory_data_param();
    data::ImageOptions image{param_.transform_param(), context().phase, context().data->folder};
    image.resize = context().data->resize;
    image.channels = static_cast<int>(m.channels()), image.height = static_cast<int>(m.height()),
    image.width = static_cast<int>(m.width());
    if (image.channels <= 0 || image.height <= 0 || image.width <= 0)
      invalid("channels, height and width of memory_data_param must be given and positive, not {}x{}x{}",
              image.channels, image.height, image.width);
    if (!database) return data::imageRowSamples(image);
    return inside([&] { return "in " + maker_.source->describe(); },
                  [&] { return data::datumSamples(image, true, *maker_.source); });
  }

  bool forwarded_ = false;
};

}  // namespace

void addMemoryData(LayerRegistry& r) { r.add<MemoryData>("MemoryData", "records that the host program names"); }

}  // namespace crema::layers
