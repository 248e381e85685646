// WindowData: R-CNN's samples: windows of images, drawn at random for every batch. Tops data, N x 3 x crop_size x
// crop_size, and label, N.
//
// window_data_param{source, batch_size, fg_threshold, bg_threshold, fg_fraction, context_pad, crop_mode, cache_images,
// root_folder, scale}; transform_param{crop_size, mirror, mean_file or mean_value, scale}. The file:
// data/window_file.h. Of a batch of N the last int(N fg_fraction) are foreground windows, those before background.
// crop_mode warp: the window, with context_pad pixels of context on each side in the crop, at any ratio of its sides;
// square: the square around it. The mean is the centre crop of mean_file. cache_images: files are read once and stay in
// memory, still encoded. scale: Caffe reads only window_data_param's, which its upgrade of old nets moves away; here
// either is used. Draws are keyed by seed, step and rank; every rank draws from all windows.
#include "data/window_file.h"
#include "layers/builtin.h"
#include "layers/record_layer.h"

namespace crema::layers {
namespace {

class WindowData : public RecordLayer {
 public:
  using RecordLayer::RecordLayer;
  Arity arity() const override { return {0, 0, 2, 2}; }

 protected:
  void configure(const Blobs&, const Blobs& top) override {
    const auto& p = param_.window_data_param();
    const DataOptions& o = *context().data;
    setBatch(p.batch_size());
    if (o.use == PassUse::kScoring)
      invalid("windows are drawn, and scoring takes every record once; use a Data or ImageData layer");
    if (!(p.fg_fraction() >= 0 && p.fg_fraction() <= 1))
      invalid("fg_fraction must be from 0 to 1, not {}", p.fg_fraction());
    data::WindowOptions options{p, param_.transform_param(), o.folder, scale(), p.cache_images() && o.opensSources()};
    options.param.set_source(sourcePath(p.source(), "window_data_param names no `source`; give the window file"));
    auto file = std::make_shared<data::WindowFile>(options);
    checkThereAre(*file);
    maker_.samples = data::windowSamples(options, file);
    maker_.source = file;
    maker_.options.choose = [file, batch = batch_, fraction = p.fg_fraction()](const data::SampleRandom& r, int item) {
      return data::chooseWindow(*file, batch, fraction, r, item);
    };
    begin(top);
  }

 private:
  float scale() const {
    const auto& w = param_.window_data_param();
    const auto& t = param_.transform_param();
    if (w.has_scale() && t.has_scale() && w.scale() != t.scale())
      invalid("window_data_param says scale {} and transform_param {}; Caffe uses the first: keep one", w.scale(),
              t.scale());
    return w.has_scale() ? w.scale() : t.scale();
  }

  void checkThereAre(const data::WindowFile& file) const {
    const auto& p = param_.window_data_param();
    const int foreground = static_cast<int>(static_cast<float>(batch_) * p.fg_fraction());
    if (foreground > 0 && file.foreground() == 0)
      badData("{} has no window with overlap >= fg_threshold {}, and fg_fraction {} asks for some", file.describe(),
              p.fg_threshold(), p.fg_fraction());
    if (foreground < batch_ && file.foreground() == file.size())
      badData("{} has no window with overlap < bg_threshold {}, and fg_fraction {} asks for some", file.describe(),
              p.bg_threshold(), p.fg_fraction());
  }
};

}  // namespace

void addWindowData(LayerRegistry& r) { r.add<WindowData>("WindowData", "windows of images, drawn for detection"); }

}  // namespace crema::layers
