#include "data/transformer.h"

#include "base/error.h"
#include "base/file.h"
#include "model/proto_io.h"

namespace crema {

Transformer::Transformer(const caffe::TransformationParameter& param, caffe::Phase phase, const std::string& folder)
    : param_(param), phase_(phase) {
  if (param_.has_mean_file() && param_.mean_value_size())
    invalid("transform_param: give either mean_file or mean_value, not both");
  if (param_.force_color() && param_.force_gray())
    invalid("transform_param: give either force_color or force_gray, not both");
  if (!param_.has_mean_file()) return;
  std::string path = param_.mean_file();
  if (!fileExists(path) && fileExists(joinPath(folder, path))) path = joinPath(folder, path);
  mean_ = readBinary<caffe::BlobProto>(path);
}

std::string shapeText(const caffe::Datum& d) { return fmt::format("{}x{}x{}", d.channels(), d.height(), d.width()); }

void checkDatum(const caffe::Datum& d) {
  if (d.encoded())
    badData("the record is an encoded image (JPEG or PNG); this version reads raw pixels: convert without -encoded");
  if (d.channels() <= 0 || d.height() <= 0 || d.width() <= 0)
    badData("the record has shape {}; is it a Caffe Datum?", shapeText(d));
  const int64_t have = d.data().empty() ? d.float_data_size() : static_cast<int64_t>(d.data().size());
  // The product of three ints can exceed 64 bits: divide instead.
  const int64_t plane = static_cast<int64_t>(d.height()) * d.width();
  if (have % plane != 0 || have / plane != d.channels())
    badData("the record has shape {} and {} values; it is damaged or no Caffe Datum", shapeText(d), have);
}

Shape Transformer::outputShape(const caffe::Datum& d) const {
  checkDatum(d);
  const int crop = static_cast<int>(param_.crop_size());
  if (crop > d.height() || crop > d.width())
    invalid("crop_size {} exceeds the records' {}x{} pixels", crop, d.height(), d.width());
  if (param_.mean_value_size() > 1 && param_.mean_value_size() != d.channels())
    invalid("{} mean_value entries for {} channels; give one, or one per channel", param_.mean_value_size(),
            d.channels());
  if (param_.has_mean_file()) {
    const bool legacy = mean_.shape().dim_size() == 0;
    const auto axis = [&](int fromEnd, int old) {
      const int n = mean_.shape().dim_size();
      return legacy ? old : n >= fromEnd ? static_cast<int>(mean_.shape().dim(n - fromEnd)) : 1;
    };
    const int c = axis(3, mean_.channels()), h = axis(2, mean_.height()), w = axis(1, mean_.width());
    if (c != d.channels() || h != d.height() || w != d.width() || mean_.data_size() != c * h * w)
      invalid("mean_file {} is {}x{}x{} and the records are {} (before cropping); compute the mean of these records",
              param_.mean_file(), c, h, w, shapeText(d));
  }
  return crop ? Shape{d.channels(), crop, crop} : Shape{d.channels(), d.height(), d.width()};
}

Transformer::Window Transformer::window(const caffe::Datum& d, const RandomStream& mirror, const RandomStream& crop,
                                        int item) const {
  const auto block = static_cast<uint64_t>(item);
  Window w{0, 0, d.height(), d.width(), param_.mirror() && (mirror.block(block)[0] & 1)};
  const int size = static_cast<int>(param_.crop_size());
  if (!size) return w;
  w.height = w.width = size;
  const int roomY = d.height() - size, roomX = d.width() - size;
  if (phase_ == caffe::TRAIN) {
    w.y = static_cast<int>(crop.below(2 * block, static_cast<uint64_t>(roomY) + 1));
    w.x = static_cast<int>(crop.below(2 * block + 1, static_cast<uint64_t>(roomX) + 1));
  } else {
    w.y = roomY / 2, w.x = roomX / 2;
  }
  return w;
}

template <class T, class Pixel>
void Transformer::convert(const caffe::Datum& d, const Window& w, Pixel pixel, T* out) const {
  const T scale = static_cast<T>(param_.scale());
  const bool file = param_.has_mean_file();
  const int values = param_.mean_value_size();
  for (int c = 0; c < d.channels(); ++c) {
    const T value = values ? static_cast<T>(param_.mean_value(values == 1 ? 0 : c)) : T(0);
    for (int y = 0; y < w.height; ++y, out += w.width) {
      const int64_t from = (static_cast<int64_t>(c) * d.height() + w.y + y) * d.width() + w.x;
      for (int x = 0; x < w.width; ++x) {
        const T mean = file ? static_cast<T>(mean_.data(static_cast<int>(from + x))) : value;
        out[w.mirror ? w.width - 1 - x : x] = (pixel(from + x) - mean) * scale;
      }
    }
  }
}

template <class T>
void Transformer::apply(const caffe::Datum& d, const RandomStream& mirror, const RandomStream& crop, int item,
                        T* out) const {
  const Window w = window(d, mirror, crop, item);
  if (d.data().empty())
    return convert<T>(
        d, w, [&](int64_t i) { return static_cast<T>(d.float_data(static_cast<int>(i))); }, out);
  const auto* bytes = reinterpret_cast<const unsigned char*>(d.data().data());
  const bool plain = !w.mirror && !param_.has_mean_file() && param_.mean_value_size() == 0 && param_.crop_size() == 0;
  if (!plain)
    return convert<T>(
        d, w, [&](int64_t i) { return static_cast<T>(bytes[i]); }, out);
  const T scale = static_cast<T>(param_.scale());
  for (size_t i = 0; i < d.data().size(); ++i) out[i] = static_cast<T>(bytes[i]) * scale;
}
template void Transformer::apply<float>(const caffe::Datum&, const RandomStream&, const RandomStream&, int,
                                        float*) const;
template void Transformer::apply<double>(const caffe::Datum&, const RandomStream&, const RandomStream&, int,
                                         double*) const;

}  // namespace crema
