// A window of an image as a sample (data/window_file.h).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "data/resize.h"
#include "data/window_file.h"
#include "model/proto_io.h"

namespace crema::data {

// With half sizes h and centre m, in x and likewise in y, and s = crop / (crop - 2 context_pad): the region m - h s to
// m + h s, rounded; square: with the larger h of the two. The part outside the image becomes margin, at the scale that
// maps the whole region to the crop.
WindowPlace placeWindow(const ImageWindow& w, int imageHeight, int imageWidth, int crop, int contextPad, bool square,
                        bool mirror) {
  WindowPlace p{w.x1, w.y1, w.x2, w.y2, crop, crop, 0, 0};
  const auto outside = [&] {
    badData("the window {} {} {} {} lies outside its image of {}x{} pixels; correct the window file", w.x1, w.y1, w.x2,
            w.y2, imageHeight, imageWidth);
  };
  if (contextPad <= 0 && !square) {
    if (w.x1 < 0 || w.y1 < 0 || w.x2 >= imageWidth || w.y2 >= imageHeight) outside();
    return p;
  }
  const float scale = static_cast<float>(crop) / static_cast<float>(crop - 2 * contextPad);
  float halfHeight = static_cast<float>((w.y2 - w.y1 + 1) / 2.0),
        halfWidth = static_cast<float>((w.x2 - w.x1 + 1) / 2.0);
  const float x = static_cast<float>(w.x1) + halfWidth, y = static_cast<float>(w.y1) + halfHeight;
  if (square) halfHeight = halfWidth = std::max(halfHeight, halfWidth);
  const auto whole = [](float v) { return static_cast<int>(std::round(v)); };
  p.x1 = whole(x - halfWidth * scale), p.x2 = whole(x + halfWidth * scale);
  p.y1 = whole(y - halfHeight * scale), p.y2 = whole(y + halfHeight * scale);
  const float scaleX = static_cast<float>(crop) / static_cast<float>(p.x2 - p.x1 + 1);
  const float scaleY = static_cast<float>(crop) / static_cast<float>(p.y2 - p.y1 + 1);
  const int left = std::max(0, -p.x1), top = std::max(0, -p.y1);
  const int right = std::max(0, p.x2 - imageWidth + 1), bottom = std::max(0, p.y2 - imageHeight + 1);
  p.x1 += left, p.x2 -= right, p.y1 += top, p.y2 -= bottom;
  if (p.x1 > p.x2 || p.y1 > p.y2) outside();
  p.top = whole(static_cast<float>(top) * scaleY);
  p.left = whole(static_cast<float>(mirror ? right : left) * scaleX);
  p.width = std::min(whole(static_cast<float>(p.x2 - p.x1 + 1) * scaleX), crop - p.left);
  p.height = std::min(whole(static_cast<float>(p.y2 - p.y1 + 1) * scaleY), crop - p.top);
  return p;
}

int64_t chooseWindow(const WindowFile& file, int batch, float fgFraction, const SampleRandom& random, int item) {
  const int foreground = static_cast<int>(static_cast<float>(batch) * fgFraction);
  const int64_t fg = file.foreground(), bg = file.size() - fg;
  const RandomStream draws = random.stream(RandomPurpose::kWindow, "");
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(draws.below(static_cast<uint64_t>(item), static_cast<uint64_t>(n)));
  };
  return item < batch - foreground ? fg + below(bg) : below(fg);
}

namespace {

// Copies the pixels of a place.
Image cut(const Image& image, const WindowPlace& p) {
  Image out{image.channels, p.y2 - p.y1 + 1, p.x2 - p.x1 + 1, {}};
  const auto pixel = static_cast<size_t>(image.channels), row = static_cast<size_t>(out.width) * pixel;
  out.bytes.resize(row * static_cast<size_t>(out.height));
  for (int y = p.y1; y <= p.y2; ++y)
    std::memcpy(out.bytes.data() + static_cast<size_t>(y - p.y1) * row,
                image.bytes.data() +
                    (static_cast<size_t>(y) * static_cast<size_t>(image.width) + static_cast<size_t>(p.x1)) * pixel,
                row);
  return out;
}

class WindowSamples : public SampleMaker {
 public:
  WindowSamples(const WindowOptions& o, std::shared_ptr<const WindowFile> file)
      : options_(o), file_(std::move(file)), crop_(static_cast<int>(o.transform.crop_size())) {
    const auto& t = o.transform;
    if (crop_ <= 0) invalid("crop_size must be given in transform_param: windows are warped to crop_size x crop_size");
    if (crop_ > 1 << 14) invalid("crop_size {} is more than {}", crop_, 1 << 14);
    if (2 * int64_t{o.param.context_pad()} >= crop_)
      invalid("context_pad {} leaves nothing of crop_size {}; it must be less than half of it", o.param.context_pad(),
              crop_);
    if (o.param.crop_mode() != "warp" && o.param.crop_mode() != "square")
      invalid("crop_mode '{}' is neither warp nor square", o.param.crop_mode());
    if (t.mean_value_size() && t.has_mean_file()) invalid("Cannot specify mean_file and mean_value at the same time");
    if (t.mean_value_size() > 1 && t.mean_value_size() != 3)
      invalid("Specify either 1 mean_value or as many as channels: 3, not {}", t.mean_value_size());
    if (t.has_mean_file()) readMean();
    shapes_ = {Shape{3, crop_, crop_}, Shape{}};
  }

  void make(const Record& record, const SampleRandom& random, int item, const std::vector<float*>& out) const override {
    ImageWindow w{};
    std::memcpy(&w, record.value.data(), sizeof w);
    const bool mirror = options_.transform.mirror() &&
                        (random.stream(RandomPurpose::kMirror, "").block(static_cast<uint64_t>(item))[0] & 1);
    const Image image = file_->image(record);
    const WindowPlace p =
        placeWindow(w, image.height, image.width, crop_, static_cast<int>(options_.param.context_pad()),
                    options_.param.crop_mode() == "square", mirror);
    std::fill_n(out[0], shapes_[0].count(), 0.f);
    if (p.height > 0 && p.width > 0) write(resizeBilinear(cut(image, p).view(), p.height, p.width), p, mirror, out[0]);
    *out[1] = static_cast<float>(w.label);
  }

 private:
  void readMean() {
    const std::string path = resolvePath(options_.transform.mean_file(), options_.folder);
    mean_ = model::readBinary<caffe::BlobProto>(path);
    const int n = mean_.shape().dim_size();
    const auto axis = [&](int fromEnd, int old) {
      return n == 0 ? old : n >= fromEnd ? static_cast<int>(mean_.shape().dim(n - fromEnd)) : 1;
    };
    const int c = axis(3, mean_.channels());
    height_ = axis(2, mean_.height()), width_ = axis(1, mean_.width());
    off_ = (width_ - crop_) / 2;
    if (c != 3 || width_ < crop_ || off_ + crop_ > height_ || mean_.data_size() != int64_t{3} * height_ * width_)
      invalid("mean_file {} is {}x{}x{}, which holds no centre of 3x{}x{}; compute the mean of larger images", path, c,
              height_, width_, crop_, crop_);
  }

  // (pixel - mean) * scale; the mean is not mirrored.
  void write(const Image& warped, const WindowPlace& p, bool mirror, float* out) const {
    const auto& t = options_.transform;
    const unsigned char* pixel = warped.bytes.data();
    for (int y = 0; y < p.height; ++y)
      for (int x = 0; x < p.width; ++x)
        for (int c = 0; c < 3; ++c) {
          const int across = p.left + (mirror ? p.width - 1 - x : x), down = p.top + y;
          float mean = 0;
          if (t.has_mean_file())
            mean = mean_.data((c * height_ + down + off_) * width_ + across + off_);
          else if (t.mean_value_size())
            mean = t.mean_value(t.mean_value_size() == 1 ? 0 : c);
          out[(c * crop_ + down) * crop_ + across] = (static_cast<float>(*pixel++) - mean) * options_.scale;
        }
  }

  WindowOptions options_;
  std::shared_ptr<const WindowFile> file_;
  int crop_;
  caffe::BlobProto mean_;
  int height_ = 0, width_ = 0, off_ = 0;
};

}  // namespace

std::unique_ptr<SampleMaker> windowSamples(const WindowOptions& options, std::shared_ptr<const WindowFile> file) {
  return std::make_unique<WindowSamples>(options, std::move(file));
}

}  // namespace crema::data
