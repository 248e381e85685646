// DummyData: blobs made by fillers. Options (dummy_data_param): data_filler none (zeros), one, or one per top; shape
// one or one per top, or the old num, channels, height, width likewise. Constant tops are filled once, others in every
// pass with new random numbers.
#include "layers/builtin.h"

namespace crema::layers {
namespace {

class DummyData : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {0, 0, 1, -1}; }

 protected:
  void configure(const Blobs&, const Blobs& top) override {
    const auto& p = param_.dummy_data_param();
    const int tops = static_cast<int>(top.size());
    const auto oneOrAll = [&](const char* what, int have, bool none) {
      if (!(have == 1 || have == tops || (none && have == 0)))
        invalid("{}: give one or one per top ({} tops), not {}", what, tops, have);
    };
    oneOrAll("data_filler", p.data_filler_size(), true);
    const bool legacy = p.num_size() > 0;
    if (legacy == (p.shape_size() > 0)) invalid("give either shape or num, channels, height and width");
    if (legacy) {
      oneOrAll("num", p.num_size(), false), oneOrAll("channels", p.channels_size(), false);
      oneOrAll("height", p.height_size(), false), oneOrAll("width", p.width_size(), false);
    } else {
      oneOrAll("shape", p.shape_size(), false);
    }
    for (int i = 0; i < tops; ++i) {
      const auto at = [&](const auto& list) { return static_cast<int>(list.Get(list.size() == 1 ? 0 : i)); };
      top[static_cast<size_t>(i)]->reshape(legacy ? Shape{at(p.num()), at(p.channels()), at(p.height()), at(p.width())}
                                                  : toShape(p.shape(p.shape_size() == 1 ? 0 : i)));
      if (context().fills)
        refill(i, *top[static_cast<size_t>(i)]);
      else
        checkFiller(filler(i), top[static_cast<size_t>(i)]->shape());
    }
  }
  void reshape(const Blobs&, const Blobs&) override {}
  void compute(const Blobs&, const Blobs& top) override {
    for (size_t i = 0; i < top.size(); ++i)
      if (filler(static_cast<int>(i)).type() != "constant") refill(static_cast<int>(i), *top[i]);
  }
  void gradient(const Blobs&, const std::vector<bool>&, const Blobs&) override {}

 private:
  const caffe::FillerParameter& filler(int top) const {
    const auto& p = param_.dummy_data_param();
    return p.data_filler_size() == 0 ? caffe::FillerParameter::default_instance()
                                     : p.data_filler(p.data_filler_size() == 1 ? 0 : top);
  }
  // Random numbers are keyed by step and rank, so earlier passes of this process do not matter.
  void refill(int top, Blob& blob) {
    const RunState& run = *context().run;
    fill(filler(top), run.seed, fmt::format("{}/{}/{}/{}", this->name(), top, run.step, run.rank), blob);
  }
};

}  // namespace

void addDummyData(LayerRegistry& r) { r.add<DummyData>("DummyData", "blobs made by fillers"); }

}  // namespace crema::layers
