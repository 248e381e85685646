// HDF5Output: appends every batch of its bottoms to the datasets `data` and `label` of an HDF5 file.
//
// Options (hdf5_output_param): file_name, relative to the working folder. The first pass creates the file, and every
// pass appends a batch (Caffe aborts at the second), after which the file is complete. Passes of display and of tests
// append too. With several ranks only rank 0 writes; with several workers it is refused in test nets. dx = 0.
#include "layers/builtin.h"
#include "model/hdf5_appender.h"

namespace crema::layers {
namespace {

class HDF5Output : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, 2, 0, 0}; }

 protected:
  void configure(const Blobs&, const Blobs&) override {
    if (param_.hdf5_output_param().file_name().empty())
      invalid("hdf5_output_param names no file_name; give the file to write");
  }
  void reshape(const Blobs& bottom, const Blobs&) override {
    for (size_t i = 0; i < 2; ++i)
      if (bottom[i]->shape().axes() == 0) invalid("bottom {} is a single number; rows need a first axis", i);
    if (bottom[0]->shape()[0] != bottom[1]->shape()[0])
      invalid("bottom 0 has {} rows and bottom 1 has {}; a row of one belongs to a row of the other",
              bottom[0]->shape()[0], bottom[1]->shape()[0]);
  }

  void compute(const Blobs& bottom, const Blobs&) override {
    if (!training() && context().data->testWorkers > 1)
      invalid(
          "{} workers share out the batches of a test, and one file takes them all; use `crema test`, or one worker",
          context().data->testWorkers);
    if (context().run->rank != 0) return;
    if (!file_) file_ = std::make_unique<model::Hdf5Appender>(param_.hdf5_output_param().file_name());
    std::vector<model::Hdf5Appender::Rows> rows;
    withType(context().dtype, [&]<class T>() {
      for (size_t i = 0; i < 2; ++i)
        rows.push_back({i == 0 ? "data" : "label",
                        {bottom[i]->shape().dims().begin(), bottom[i]->shape().dims().end()},
                        sizeof(T) == sizeof(double),
                        bottom[i]->data<T>()});
    });
    file_->append(rows);
  }
  void gradient(const Blobs&, const std::vector<bool>& down, const Blobs& bottom) override {
    for (size_t i = 0; i < bottom.size(); ++i)
      if (down[i]) bottom[i]->fillDiff(0);
  }

 private:
  std::unique_ptr<model::Hdf5Appender> file_;
};

}  // namespace

void addHDF5Output(LayerRegistry& r) { r.add<HDF5Output>("HDF5Output", "bottoms appended to an HDF5 file"); }

}  // namespace crema::layers
