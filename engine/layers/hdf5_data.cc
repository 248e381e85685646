// HDF5Data: rows of HDF5 files; each top is the dataset of its name, N x the dataset's other axes.
//
// Options (hdf5_data_param): source, a text file of paths between white space; batch_size; shuffle: in phase TRAIN each
// epoch shuffles the order of files and of the rows in each, by random_seed, layer and epoch (Caffe ignores random_seed
// here and shuffles tests too; here a test always reads the same rows). Integers and floating point numbers of any
// width are converted to float. Rows come in order and wrap inside a batch; blocks of batch_size are assigned to ranks
// in turn (data/shard.h). Of a file at most 64 MB are in memory (data/hdf5_source.cc). transform_param is
// refused, as in Caffe: the values are taken as they are.
#include "data/hdf5_source.h"
#include "layers/builtin.h"
#include "layers/record_layer.h"

namespace crema::layers {
namespace {

class HDF5Data : public RecordLayer {
 public:
  using RecordLayer::RecordLayer;
  Arity arity() const override { return {0, 0, 1, -1}; }

 protected:
  void configure(const Blobs&, const Blobs& top) override {
    const auto& p = param_.hdf5_data_param();
    if (param_.has_transform_param())
      invalid("HDF5Data does not transform its data; remove transform_param and store the values as they are to be");
    setBatch(p.batch_size());
    const std::string list =
        sourcePath(p.source(), "hdf5_data_param names no `source`; give the path of a text file that lists HDF5 files");
    const bool shuffle = p.shuffle() && training();
    const std::vector<std::string> datasets(param_.top().begin(), param_.top().end());
    const data::Hdf5Data data = data::openHdf5Data(list, datasets, shuffle);
    maker_.source = data.rows, maker_.samples = data.samples;
    maker_.options.shuffle = shuffle;
    if (shuffle) maker_.options.files = std::make_shared<const data::FileOrder>(data.firstOfFile, data.rows->size());
    inside([&] { return "in " + maker_.source->describe(); }, [&] { begin(top); });
  }
  int prefetch() const override { return 1; }  // rows are only copied
};

}  // namespace

void addHDF5Data(LayerRegistry& r) { r.add<HDF5Data>("HDF5Data", "rows of HDF5 files"); }

}  // namespace crema::layers
