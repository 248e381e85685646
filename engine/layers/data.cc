// Data: records of a database, one sample of each in each top. Tops data [, label]; labels N.
//
// Options: data_param{source, batch_size, backend, prefetch}; transform_param: data/transformer.h. Shapes come from the
// first record; with batch_size 1 and no crop_size each batch has its record's shape. Which records: data/shard.h;
// while scoring every record comes once, in order, and the last batch is short. An image that cannot be decoded is an
// error, as in Caffe. rand_skip does nothing, as in Caffe 1.0.
#include "base/log.h"
#include "layers/builtin.h"
#include "layers/record_layer.h"

namespace crema::layers {
namespace {

class Data : public RecordLayer {
 public:
  using RecordLayer::RecordLayer;
  Arity arity() const override { return {0, 0, 1, 2}; }

 protected:
  void configure(const Blobs&, const Blobs& top) override {
    const auto& p = param_.data_param();
    setBatch(p.batch_size());
    if (p.rand_skip())
      LOG_WARNING("{}: rand_skip {} is ignored, as Caffe 1.0 does; reading begins at the first record", label(),
                  p.rand_skip());
    const DataOptions& o = *context().data;
    const auto* host = std::get_if<FromHost>(&o.source);
    maker_.source = host ? host->records : data::openSource(p.backend(), databasePath(p.source()));
    data::ImageOptions image{param_.transform_param(), context().phase, o.folder};
    image.resize = o.resize;
    image.varies = batch_ == 1 && !image.transform.crop_size();
    maker_.samples = inside([&] { return "in " + maker_.source->describe(); },
                            [&] { return data::datumSamples(image, top.size() > 1, *maker_.source); });
    begin(top);
  }
};

}  // namespace

void addData(LayerRegistry& r) { r.add<Data>("Data", "records of a database"); }

}  // namespace crema::layers
