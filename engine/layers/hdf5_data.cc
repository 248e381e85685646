// HDF5Data: rows of HDF5 files; each top is the dataset of its name, N x the dataset's other axes.
//
// Options (hdf5_data_param): source, a text file of paths between white space; batch_size; shuffle: in phase TRAIN each
// epoch takes the files in an order of its own and the rows of each likewise, drawn by random_seed, layer and epoch
// (Caffe draws outside of random_seed, and shuffles tests too: here a test takes the same rows each time). Integers and
// floating point numbers of any width are converted to float. Rows come in order and wrap inside a batch; blocks of
// batch_size are dealt to ranks in turn (data/shard.h). No more than a few MB of a file are in memory
// (model/hdf5_rows.h). transform_param is refused, as in Caffe: the values are taken as they are.
#include <algorithm>

#include "base/file.h"
#include "data/batch_feed.h"
#include "data/hdf5_source.h"
#include "layers/builtin.h"

namespace crema {
namespace {

class HDF5Data : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {0, 0, 1, -1}; }
  std::string fingerprint() const override { return fingerprintOf(*maker_.source); }
  int batchSize() const override { return maker_.options.batch; }
  int64_t testCycle() const override { return maker_.testCycle(); }

 protected:
  void configure(const Blobs&, const Blobs& top) override {
    const auto& p = param_.hdf5_data_param();
    if (param_.has_transform_param())
      invalid("HDF5Data does not transform its data; remove transform_param and store the values as they are to be");
    if (p.batch_size() == 0 || p.batch_size() > INT32_MAX)
      invalid("batch_size of hdf5_data_param must be given, positive and below 2^31");
    if (p.source().empty())
      invalid("hdf5_data_param names no `source`; give the path of a text file that lists HDF5 files");
    const DataOptions& o = *context().data;
    const bool shuffle = p.shuffle() && training();
    const std::vector<std::string> datasets(param_.top().begin(), param_.top().end());
    const Hdf5Data data = openHdf5Data(resolvePath(p.source(), o.folder), datasets, shuffle);
    maker_.source = data.rows, maker_.samples = data.samples;
    FeedOptions& f = maker_.options;
    f.batch = static_cast<int>(p.batch_size());
    f.seed = context().run->seed;
    f.layer = name();
    f.ranks = o.ranks, f.myRanks = o.myRanks, f.stepsPerRank = o.stepsPerRank;
    f.test = context().phase == caffe::TEST, f.workers = o.testWorkers;
    f.shuffle = shuffle;
    if (shuffle) f.files = std::make_shared<const FileOrder>(data.firstOfFile, data.rows->size());
    feed_ = std::make_unique<BatchFeed>(maker_);
    for (size_t t = 0; t < top.size(); ++t) {
      std::vector<int> dims = {f.batch};
      const Shape& row = maker_.samples->shape(t);
      dims.insert(dims.end(), row.dims().begin(), row.dims().end());
      inside([&] { return "in " + maker_.source->describe(); }, [&] { top[t]->reshape(Shape(dims)); });
    }
  }
  void reshape(const Blobs&, const Blobs&) override {}

  void compute(const Blobs&, const Blobs& top) override {
    const Batch& batch = feed_->next(context().run->rank, context().run->step);
    withType(context().dtype, [&]<class T>() {
      for (size_t t = 0; t < top.size(); ++t)
        std::copy(batch.tops[t].begin(), batch.tops[t].end(), top[t]->mutableData<T>());
    });
  }
  void gradient(const Blobs&, const std::vector<bool>&, const Blobs&) override {}

 private:
  BatchMaker maker_;
  std::unique_ptr<BatchFeed> feed_;
};

}  // namespace

void addHDF5Data(LayerRegistry& r) { r.add<HDF5Data>("HDF5Data", "rows of HDF5 files"); }

}  // namespace crema
