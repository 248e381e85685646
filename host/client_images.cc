#include "host/client_images.h"

#include <limits>

#include "base/error.h"
#include "data/resize.h"
#include "data/samples.h"
#include "data/transformer.h"

namespace crema::host {
namespace {

// OpenCV's IMREAD flags, as far as they concern images of 8 bits per channel.
constexpr int kAsIsFlags = -1, kColourBit = 1, kAnyColourBit = 4;

data::Image read(const std::string& file, data::ColourMode colour) {
  data::Image image;
  std::string why;
  if (!data::decodeImage(file, colour, &image, &why)) badData("the image {}", why);
  return image;
}

data::ImageView viewOf(const engine::Image& i) {
  const auto pixels = static_cast<int64_t>(i.pixels().size());
  data::ImageView v{i.channels(), i.height(), i.width(), reinterpret_cast<const unsigned char*>(i.pixels().data()),
                    nullptr,      true};
  const bool sized = v.channels > 0 && v.height > 0 && v.width > 0;
  if (!sized || pixels / v.channels / v.height != v.width || v.count() != pixels)
    badData("an image of {} is announced with {} bytes; were its bytes decoded?", data::shapeText(v), pixels);
  return v;
}

// The pictures of a request: its images, or the items of its blob.
std::vector<data::ImageView> viewsOf(const engine::Transform& request) {
  std::vector<data::ImageView> views;
  for (const auto& image : request.image()) views.push_back(viewOf(image));
  if (!request.has_blob()) return views;
  const engine::Blob& b = request.blob();
  int64_t count = static_cast<int64_t>(sizeof(float));
  for (const int d : b.dim()) count = d < 1 || count > std::numeric_limits<int>::max() ? 0 : count * d;
  if (b.dim_size() != 4 || count != static_cast<int64_t>(b.data().size()))
    invalid("a blob to transform needs 4 axes (N x C x H x W), all positive, and as many values");
  const auto* values = reinterpret_cast<const float*>(b.data().data());
  for (int i = 0; i < b.dim(0); ++i, values += b.dim(1) * b.dim(2) * b.dim(3))
    views.push_back({b.dim(1), b.dim(2), b.dim(3), nullptr, values, false});
  return views;
}

void put(data::Image&& from, engine::Image* out) {
  out->set_channels(from.channels), out->set_height(from.height), out->set_width(from.width);
  out->set_pixels(from.bytes.data(), from.bytes.size());
}

}  // namespace

void decode(const engine::Decode& request, engine::Image* out) {
  const int flags = request.flags();
  if (flags == kAsIsFlags) return put(read(request.file(), data::ColourMode::kAsIs), out);
  if (flags & kColourBit) return put(read(request.file(), data::ColourMode::kColour), out);
  if (!(flags & kAnyColourBit)) return put(read(request.file(), data::ColourMode::kGrey), out);
  data::Image image = read(request.file(), data::ColourMode::kAsIs);
  put(image.channels == 4 ? read(request.file(), data::ColourMode::kColour) : std::move(image),
      out);  // any number of colours, without alpha
}

void resize(const engine::Resize& request, engine::Image* out) {
  put(data::resizeBilinear(viewOf(request.image()), request.height(), request.width()), out);
}

void transform(const engine::Transform& request, engine::Blob* out) {
  caffe::TransformationParameter param;
  if (!param.ParseFromString(request.parameter())) badData("the TransformationParameter cannot be read");
  const std::vector<data::ImageView> views = viewsOf(request);
  const int count = static_cast<int>(views.size());
  if (count == 0) invalid("there is no image to transform");
  const data::Transformer transformer(param, request.train() ? caffe::TRAIN : caffe::TEST, "");
  const data::ImageView& first = views[0];
  const Shape sample = transformer.outputShape(first);
  if (sample.count() > std::numeric_limits<int>::max() / 4 / count)
    invalid("{} images of {} make more than 2 GiB", count, sample.brief());
  const data::SampleRandom random{request.seed(), request.sequence(), 0, "FloatDataTransformer"};
  const RandomStream mirror = random.stream(RandomPurpose::kMirror, ""), crop = random.stream(RandomPurpose::kCrop, "");
  std::vector<float> values(static_cast<size_t>(sample.count()) * static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    const data::ImageView& v = views[static_cast<size_t>(i)];
    if (v.channels != first.channels || v.height != first.height || v.width != first.width)
      invalid("image {} is {}, image 0 is {}; resize them to one size", i, data::shapeText(v), data::shapeText(first));
    transformer.apply(v, mirror, crop, i, values.data() + static_cast<ptrdiff_t>(sample.count()) * i);
  }
  out->add_dim(count);
  for (int d : sample.dims()) out->add_dim(d);
  out->set_data(values.data(), values.size() * sizeof(float));
}

}  // namespace crema::host
