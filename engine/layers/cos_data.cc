// CoSData, CaffeOnSpark's: rows of a host program (a Spark DataFrame), one top for each column. A top is N x its first
// sample_num_axes of (channels, height, width), or (channels, N) with transpose.
//
// Options: cos_data_param{batch_size, shuffle, top{name, type, channels, height, width, sample_num_axes, transpose,
// transform_param}}; each image top has a transform_param of its own (data/transformer.h). shuffle: in phase TRAIN
// every epoch of a rank has another order. Images that cannot be decoded are skipped, logged and counted. Which rows:
// data/shard.h; while scoring every row comes once, in order, and the last batch is short.
#include "layers/builtin.h"
#include "layers/record_layer.h"

namespace crema::layers {
namespace {

class CoSData : public RecordLayer {
 public:
  using RecordLayer::RecordLayer;
  Arity arity() const override { return {0, 0, 1, -1}; }

 protected:
  void configure(const Blobs&, const Blobs& top) override {
    const auto& p = param_.cos_data_param();
    const DataOptions& o = *context().data;
    setBatch(p.batch_size());
    if (p.top_size() != static_cast<int>(top.size()))
      invalid("cos_data_param describes {} tops, the layer has {}", p.top_size(), top.size());
    if (const auto* host = std::get_if<FromHost>(&o.source))
      maker_.source = host->records;
    else if (o.opensSources())
      invalid("CoSData takes the rows of a host program (a Spark DataFrame); a database is read by Data or MemoryData");
    maker_.samples = data::cosRowSamples(p, context().phase, o.folder, o.resize);
    maker_.options.skipping = true;
    maker_.options.shuffle = p.shuffle() && training();
    begin(top);
  }

  void compute(const Blobs& bottom, const Blobs& top) override {
    maker_.source ? RecordLayer::compute(bottom, top) : takeBlobs(top);
  }

  bool transposed(size_t top) const override { return param_.cos_data_param().top(static_cast<int>(top)).transpose(); }
};

}  // namespace

void addCoSData(LayerRegistry& r) { r.add<CoSData>("CoSData", "CaffeOnSpark's rows"); }

}  // namespace crema::layers
