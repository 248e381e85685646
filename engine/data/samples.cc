#include "data/samples.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/log.h"
#include "data/decode.h"
#include "data/image.h"
#include "data/resize.h"
#include "data/row.h"
#include "data/transformer.h"

namespace crema::data {

RandomStream SampleRandom::stream(RandomPurpose purpose, const std::string& top) const {
  RandomKey key;
  key.seed = seed;
  key.purpose = purpose;
  key.name = hashName(top.empty() ? layer : layer + "/" + top);
  key.step = step;
  key.rank = rank;
  return RandomStream(key);
}

namespace {

int32_t int32At(std::string_view bytes, size_t i) {
  int32_t value = 0;
  std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
  return value;
}

// One image top: takes encoded images or pixels, gives transformed planes.
class ImageTop {
 public:
  // top: names its random numbers; "" for the first top of a layer.
  ImageTop(ImageOptions options, std::string top)
      : options_(std::move(options)),
        top_(std::move(top)),
        transformer_(options_.transform, options_.phase, options_.folder) {}

  const ImageOptions& options() const { return options_; }
  ColourMode colour() const {
    return options_.channels == 1   ? ColourMode::kGrey
           : options_.channels == 3 ? ColourMode::kColour
                                    : ColourMode::kAsIs;
  }
  // The shape of a sample, where the options give the image's.
  Shape describedShape() const {
    const int crop = static_cast<int>(options_.transform.crop_size());
    if (crop > options_.height || crop > options_.width)
      invalid("crop_size {} exceeds the images' {}x{} pixels", crop, options_.height, options_.width);
    return crop ? Shape{options_.channels, crop, crop} : Shape{options_.channels, options_.height, options_.width};
  }
  Shape shapeOf(const ImageView& view) const { return transformer_.outputShape(view); }

  void make(ImageView view, const Shape& shape, const SampleRandom& random, int item, float* out) const {
    Image resized;
    if (options_.resize && options_.height > 0 && (view.height != options_.height || view.width != options_.width)) {
      resized = resizeBilinear(view, options_.height, options_.width);
      view = resized.view();
    }
    if (!(shapeOf(view) == shape))
      badData(
          "the image is {}x{}x{} and becomes {} where {} is wanted; correct channels, height and width, resize the "
          "images (-resize in Spark, or when they are converted), crop them (crop_size), or read them with a Data "
          "layer of batch_size 1",
          view.channels, view.height, view.width, shapeOf(view).brief(), shape.brief());
    transformer_.apply<float>(view, random.stream(RandomPurpose::kMirror, top_),
                              random.stream(RandomPurpose::kCrop, top_), item, out);
  }

 private:
  ImageOptions options_;
  std::string top_;
  Transformer transformer_;
};

// `bytes` as pixels row by row, channels side by side.
ImageView pixels(std::string_view bytes, int channels, int height, int width) {
  const int64_t want = int64_t{1} * channels * height * width;
  if (channels <= 0 || height <= 0 || width <= 0 || static_cast<int64_t>(bytes.size()) != want)
    badData(
        "the image has {} bytes, not the {} of {}x{}x{} pixels; is it encoded (image_encoded, or a column `encoded`)?",
        bytes.size(), want, channels, height, width);
  ImageView view{};
  view.channels = channels, view.height = height, view.width = width;
  view.bytes = reinterpret_cast<const unsigned char*>(bytes.data());
  view.interleaved = true;
  return view;
}

// The image field of a row (data/row.h), as a view of it or of *decoded. sized: the colour mode for an encoded image
// whose row gives height and width; without these the top's channels decide.
ImageView imageOf(std::string_view field, const ImageTop& top, ColourMode sized, Image* decoded) {
  constexpr size_t kHead = 4 * sizeof(int32_t);
  if (field.size() < kHead) internal("an image of a row has no head");
  const int channels = int32At(field, 0), height = int32At(field, 1), width = int32At(field, 2);
  const bool saysSize = height > 0 && width > 0;
  const std::string_view bytes = field.substr(kHead);
  if (!int32At(field, 3)) {
    const ImageOptions& o = top.options();
    return saysSize ? pixels(bytes, channels, height, width) : pixels(bytes, o.channels, o.height, o.width);
  }
  std::string why;
  if (!decodeImage(bytes, saysSize ? sized : top.colour(), decoded, &why)) throw Undecodable(why);
  if (saysSize && (decoded->height != height || decoded->width != width))
    throw Undecodable(
        fmt::format("is {}x{} pixels where its row says {}x{}", decoded->height, decoded->width, height, width));
  return decoded->view();
}

class DatumSamples : public SampleMaker {
 public:
  DatumSamples(const ImageOptions& options, bool label, const RecordSource& source) : image_(options, "") {
    if (options.height > 0) {
      shapes_.push_back(image_.describedShape());
    } else {
      if (source.size() == 0) badData("{} holds no records", source.describe());
      Image decoded;
      const caffe::Datum first = parse(source.read(0));
      shapes_.push_back(image_.shapeOf(view(first, &decoded)));
    }
    if (label) shapes_.push_back(Shape{});
  }

  void make(const Record& record, const SampleRandom& random, int item, const std::vector<float*>& out) const override {
    const caffe::Datum datum = parse(record);
    Image decoded;
    image_.make(view(datum, &decoded), shapes_[0], random, item, out[0]);
    if (out.size() > 1) *out[1] = static_cast<float>(datum.label());
  }
  bool varies() const override { return image_.options().varies; }
  void makeOne(const Record& record, const SampleRandom& random, std::vector<Shape>* shapes,
               std::vector<std::vector<float>>* tops) const override {
    const caffe::Datum datum = parse(record);
    Image decoded;
    const ImageView image = view(datum, &decoded);
    (*shapes)[0] = image_.shapeOf(image);
    (*tops)[0].resize(static_cast<size_t>((*shapes)[0].count()));
    image_.make(image, (*shapes)[0], random, 0, (*tops)[0].data());
    if (tops->size() > 1) (*tops)[1][0] = static_cast<float>(datum.label());
  }

 private:
  static caffe::Datum parse(const Record& record) {
    caffe::Datum datum;
    if (!datum.ParseFromArray(record.value.data(), static_cast<int>(record.value.size())))
      badData("it is no Caffe Datum ({} bytes)", record.value.size());
    return datum;
  }
  ImageView view(const caffe::Datum& datum, Image* decoded) const {
    const auto& t = image_.options().transform;
    ColourMode colour = t.force_color() ? ColourMode::kColour : t.force_gray() ? ColourMode::kGrey : image_.colour();
    std::string why;
    if (!datum.encoded()) return viewOf(datum, decoded, colour);
    if (!decodeImage(datum.data(), colour, decoded, &why)) throw Undecodable(why);
    return decoded->view();
  }

  ImageTop image_;
};

class ImageRowSamples : public SampleMaker {
 public:
  explicit ImageRowSamples(const ImageOptions& options) : image_(options, "") {
    shapes_ = {image_.describedShape(), Shape{}};
  }

  void make(const Record& record, const SampleRandom& random, int item, const std::vector<float*>& out) const override {
    RowReader row(record.value);
    const std::string_view label = row.next(), image = row.next();
    if (label.size() != sizeof(float)) internal("a row is not one of MemoryData");
    std::memcpy(out[1], label.data(), sizeof(float));
    Image decoded;
    image_.make(imageOf(image, image_, ColourMode::kAsIs, &decoded), shapes_[0], random, item, out[0]);
  }

 private:
  ImageTop image_;
};

// One top of CoSData.
struct CosTop {
  caffe::CoSDataParameter::TopBlob param;
  std::unique_ptr<ImageTop> image;  // null for numbers
};

bool isImage(caffe::CoSDataParameter::DataType type) { return type >= caffe::CoSDataParameter::ENCODED_IMAGE; }

class CosRowSamples : public SampleMaker {
 public:
  CosRowSamples(const caffe::CoSDataParameter& param, caffe::Phase phase, const std::string& folder, bool resize) {
    for (const auto& top : param.top())
      inside([&] { return "in top '" + top.name() + "' of cos_data_param"; },
             [&] { addTop(top, phase, folder, resize); });
  }

  void make(const Record& record, const SampleRandom& random, int item, const std::vector<float*>& out) const override {
    RowReader row(record.value);
    for (size_t t = 0; t < tops_.size(); ++t)
      inside([&] { return "in column '" + tops_[t].param.name() + "'"; },
             [&] { makeTop(t, row.next(), random, item, out[t]); });
  }

 private:
  void addTop(const caffe::CoSDataParameter::TopBlob& top, caffe::Phase phase, const std::string& folder, bool resize) {
    const int axes = static_cast<int>(top.sample_num_axes());
    if (axes > 3) invalid("sample_num_axes is {}; a sample has at most 3 (channels, height, width)", axes);
    if (top.transpose() && axes != 1) invalid("transpose needs sample_num_axes: 1, not {}", axes);
    const auto side = [&](uint32_t out, uint32_t in) { return static_cast<int>(out ? out : in); };
    std::vector<int> dims = {side(top.out_channels(), top.channels()), side(top.out_height(), top.height()),
                             side(top.out_width(), top.width())};
    dims.resize(static_cast<size_t>(axes));
    for (int d : dims)
      if (d <= 0) invalid("its first {} of channels, height, width must be given and positive", axes);
    CosTop made;
    made.param = top;
    if (isImage(top.type())) {
      if (!top.has_transform_param())
        invalid(
            "Images require a transformer to convert from MatVector to FloatBlob: give transform_param (it may be "
            "empty: transform_param {{ }})");
      if (axes != 3) invalid("an image needs sample_num_axes: 3, not {}", axes);
      made.image = std::make_unique<ImageTop>(
          ImageOptions{top.transform_param(), phase, folder, static_cast<int>(top.channels()),
                       static_cast<int>(top.height()), static_cast<int>(top.width()), resize},
          tops_.empty() ? "" : top.name());
      const Shape becomes = made.image->describedShape();
      const bool said = top.out_channels() || top.out_height() || top.out_width();
      if (said && !(becomes == Shape{dims[0], dims[1], dims[2]}))
        invalid("out_channels, out_height, out_width say {} and the transform makes {}",
                Shape{dims[0], dims[1], dims[2]}.brief(), becomes.brief());
      shapes_.push_back(becomes);
    } else {
      shapes_.push_back(Shape(dims));
    }
    tops_.push_back(std::move(made));
  }

  void makeTop(size_t t, std::string_view field, const SampleRandom& random, int item, float* out) const {
    const CosTop& top = tops_[t];
    if (!top.image) return numbers(top.param, field, shapes_[t], out);
    Image decoded;
    top.image->make(imageOf(field, *top.image, top.image->colour(), &decoded), shapes_[t], random, item, out);
  }

  // A value shorter than its top is padded with zeros, as in CaffeOnSpark, whose recipe for captions makes sentences of
  // 20 words for a net of 21.
  void numbers(const caffe::CoSDataParameter::TopBlob& top, std::string_view field, const Shape& shape,
               float* out) const {
    const auto have = static_cast<int64_t>(field.size() / sizeof(float)), want = static_cast<int64_t>(shape.count());
    const bool sentence = top.type() == caffe::CoSDataParameter::INT_ARRAY;
    if (have > want)
      badData("blob size is {}, but total data length is {}.{}", want, have,
              sentence ? fmt::format(" Make frames of captions with -captionLength {}", want) : "");
    std::memcpy(out, field.data(), field.size());
    std::fill(out + have, out + want, 0.f);
    if (have < want && !logged_.exchange(true))
      LOG_WARNING("column '{}' has {} values where the top holds {}: the others are 0, as in CaffeOnSpark.{}",
                  top.name(), have, want,
                  sentence ? fmt::format(" -captionLength {} makes captions of that length", want)
                           : " Correct channels, height and width if that is not meant");
  }

  std::vector<CosTop> tops_;
  mutable std::atomic<bool> logged_{false};
};

}  // namespace

std::unique_ptr<SampleMaker> datumSamples(const ImageOptions& options, bool label, const RecordSource& source) {
  return std::make_unique<DatumSamples>(options, label, source);
}
std::unique_ptr<SampleMaker> imageRowSamples(const ImageOptions& options) {
  return std::make_unique<ImageRowSamples>(options);
}
std::unique_ptr<SampleMaker> cosRowSamples(const caffe::CoSDataParameter& param, caffe::Phase phase,
                                           const std::string& folder, bool resize) {
  return std::make_unique<CosRowSamples>(param, phase, folder, resize);
}

}  // namespace crema::data
