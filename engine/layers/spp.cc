// SPP, spatial pyramid pooling (He et al. 2014): the same number of outputs for images of any size. Level l = 0 ..
// height - 1 pools each plane into 2^l x 2^l bins; top = for each item all bins of level 0 by channel, then of level 1,
// ...
//   bin i of b on an axis of n: k = ceil(n / b), p = floor((k b - n + 1) / 2); [i k - p, i k - p + k), cut at n + p
// Where p >= k (n small compared with b: Caffe aborts there) the bin is [floor(i n / b), ceil((i + 1) n / b)), as in
// the paper.
// Options (spp_param): pyramid_height; pool MAX (default), AVE (padding counts, as in Pooling), STOCHASTIC (pooling.cc;
// Caffe has it on GPUs alone, and without padding). With height 1 the top is N x C x 1 x 1, else N x values.
#include "layers/builtin.h"
#include "layers/pool_windows.h"

namespace crema::layers {
namespace {

std::vector<PoolSpan> bins(int n, int b) {
  const int k = (n + b - 1) / b, p = (k * b - n + 1) / 2;
  std::vector<PoolSpan> spans;
  for (int i = 0; i < b; ++i)
    if (p < k)
      spans.push_back({i * k - p, std::min(i * k - p + k, n + p)});
    else
      spans.push_back({static_cast<int>(int64_t{i} * n / b), static_cast<int>((int64_t{i + 1} * n + b - 1) / b)});
  return spans;
}

class Spp : public Layer {
 public:
  using Layer::Layer;

 protected:
  void configure(const Blobs&, const Blobs&) override {
    constexpr uint32_t kMost = 12;  // 4096 x 4096 bins
    const auto& p = param_.spp_param();
    if (p.pyramid_height() < 1 || p.pyramid_height() > kMost)
      invalid("pyramid_height must be given, 1 to {}, not {}", kMost, p.pyramid_height());
    rule_ = p.pool() == caffe::SPPParameter::MAX   ? PoolRule::kMax
            : p.pool() == caffe::SPPParameter::AVE ? PoolRule::kAve
            : training()                           ? PoolRule::kDraw
                                                   : PoolRule::kExpect;
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape& in = bottom[0]->shape();
    if (in.axes() != 4) invalid("SPP needs 4 axes (num, channels, height, width), the bottom is {}", in.brief());
    if (in[2] == 0 || in[3] == 0) invalid("Input dimensions cannot be zero: the bottom is {}", in.brief());
    levels_.clear();
    int64_t values = 0;
    for (uint32_t l = 0; l < param_.spp_param().pyramid_height(); ++l) {
      levels_.push_back({in[0], in[1], in[2], in[3], bins(in[2], 1 << l), bins(in[3], 1 << l)});
      values += int64_t{in[1]} * levels_.back().area();
    }
    if (values > INT32_MAX) invalid("{} values for each item are too many; use a smaller pyramid_height", values);
    row_ = values;
    top[0]->reshape(levels_.size() == 1 ? Shape{in[0], in[1], 1, 1} : Shape{in[0], static_cast<int>(values)});
    if (in == shape_) return;
    shape_ = in;
    winners_.assign(static_cast<size_t>(top[0]->count()), 0);  // indices in the plane
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    const RandomStream draws = random(RandomPurpose::kPooling);
    withType(context().dtype, [&]<class T>() {
      const T* x = bottom[0]->data<T>();
      T* y = top[0]->mutableData<T>();
      eachLevel([&](const PoolWindows& level, int64_t inRow, int64_t inAll) {
        poolWindows<T>(kernels(), rule_, level, x, y + inRow, row_, winners_.data() + inAll, draws,
                       static_cast<uint64_t>(inAll));
      });
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    bottom[0]->fillDiff(0);
    withType(context().dtype, [&]<class T>() {
      const T *x = bottom[0]->data<T>(), *dy = top[0]->diff<T>();
      T* dx = bottom[0]->mutableDiff<T>();
      eachLevel([&](const PoolWindows& level, int64_t inRow, int64_t inAll) {
        addPoolGradient<T>(kernels(), rule_, level, x, dy + inRow, row_, winners_.data() + inAll, dx);
      });
    });
  }

 private:
  // use(level, its offset in an item's row of the top, its offset among all winners)
  template <class Use>
  void eachLevel(Use use) const {
    int64_t inRow = 0;
    for (const PoolWindows& level : levels_) {
      use(level, inRow, inRow * level.images);
      inRow += int64_t{level.channels} * level.area();
    }
  }
  PoolRule rule_ = PoolRule::kMax;
  std::vector<PoolWindows> levels_;
  std::vector<int32_t> winners_;
  int64_t row_ = 0;
  Shape shape_;
};

}  // namespace

void addSPP(LayerRegistry& r) { r.add<Spp>("SPP", "pooling into a pyramid of bins, whatever the image's size"); }

}  // namespace crema::layers
