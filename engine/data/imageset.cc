#include "data/imageset.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "data/encode.h"
#include "data/record_writer.h"
#include "data/shuffle.h"
#include "data/transformer.h"

namespace crema::data {
namespace {

std::string lower(std::string_view text) {
  std::string low(text);
  std::transform(low.begin(), low.end(), low.begin(), [](unsigned char c) { return std::tolower(c); });
  return low;
}

std::string ending(const std::string& name) {
  const size_t dot = name.rfind('.');
  return lower(dot == std::string::npos ? name : name.substr(dot + 1));
}

std::string planes(const Image& image) {
  const auto channels = static_cast<size_t>(image.channels), plane = image.bytes.size() / channels;
  std::string out(image.bytes.size(), '\0');
  for (size_t i = 0; i < plane; ++i)
    for (size_t c = 0; c < channels; ++c) out[c * plane + i] = static_cast<char>(image.bytes[i * channels + c]);
  return out;
}

// How a file is to be encoded; "" for raw pixels.
std::string encodingOf(const ImagesetOptions& o, const std::string& name) {
  return !o.encodeType.empty() ? o.encodeType : o.encoded ? ending(name) : "";
}

// The record of one file; *values: the number of its pixel values. Throws kIo or kData when it is no image.
caffe::Datum datumOf(const ImagesetOptions& o, const std::string& name, int label, size_t* values) {
  const std::string path = o.root + name, bytes = readFile(path), encoding = encodingOf(o, name);
  const Image image = imageOfFile(bytes, path, {o.grey ? ColourMode::kGrey : ColourMode::kColour, o.height, o.width});
  *values = image.bytes.size();
  caffe::Datum d;
  d.set_label(label);
  if (encoding.empty()) {
    d.set_channels(image.channels), d.set_height(image.height), d.set_width(image.width);
    d.set_data(planes(image)), d.set_encoded(false);
    return d;
  }
  const Encoding as = inside([&] { return "at " + path; }, [&] { return parseEncoding(encoding); });
  const bool sameFormat = ending(name) == lower(encoding) || (lower(encoding) == "jpg" && ending(name) == "jpeg");
  d.set_encoded(true);
  d.set_data(sameFormat && !o.height && !o.width ? bytes : encodeImage(image, as));
  return d;
}

// Writes record after record, leaving out what is no image.
class Conversion {
 public:
  explicit Conversion(const ImagesetOptions& o)
      : o_(o), list_(announced(o)), database_(makeRecordWriter(o.backend, o.database)) {}

  int64_t run() {
    RandomKey key;
    key.seed = o_.seed, key.purpose = RandomPurpose::kShuffle;
    const RandomStream order(key);
    for (int64_t i = 0; i < list_.size(); ++i) {
      const Record record = list_.read(o_.shuffle ? permuted(order, list_.size(), i) : i);
      if (!put(record, o_.shuffle ? i : list_.lineOf(record) - 1)) continue;
      if (database_->written() % 1000 == 0) LOG_INFO("Processed {} files.", database_->written());
    }
    const int64_t written = database_->written();
    if (written == 0)
      badData("none of the {} images of {} can be read; is ROOTFOLDER/ right? It is written before the paths as it is",
              list_.size(), o_.list);
    database_->finish();
    if (written % 1000 != 0) LOG_INFO("Processed {} files.", written);
    return written;
  }

 private:
  static ImageList announced(const ImagesetOptions& o) {
    if (!o.encodeType.empty()) parseEncoding(o.encodeType);
    ImageList list(o.list);
    if (o.shuffle) LOG_INFO("Shuffling data");
    LOG_INFO("A total of {} images.", list.size());
    if (!o.encodeType.empty() && !o.encoded) LOG_INFO("encode_type specified, assuming encoded=true.");
    return list;
  }

  bool put(const Record& record, int64_t number) {
    const ListedImage listed = ImageList::parse(record);
    const std::string name(listed.path);
    size_t values = 0;
    caffe::Datum d;
    try {
      d = datumOf(o_, name, listed.label, &values);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kIo && e.kind() != ErrorKind::kData) throw;
      LOG_ERROR("Could not open or find file {}{}: {}", o_.root, name, e.message());
      return false;
    }
    if (first_ == 0) first_ = values;
    if (o_.checkSize && values != first_)
      badData(
          "Incorrect data field size {}: {}{} (line {} of {}), where the first image has {}; say -resize_height and "
          "-resize_width",
          values, o_.root, name, list_.lineOf(record), o_.list, first_);
    database_->put(fmt::format("{:08d}_{}", number, name), d.SerializeAsString());
    return true;
  }

  const ImagesetOptions& o_;
  ImageList list_;
  std::unique_ptr<RecordWriter> database_;
  size_t first_ = 0;  // values of the first image
};

class Mean {
 public:
  void add(const caffe::Datum& d) {
    Image decoded;
    const ImageView v = viewOf(d, &decoded, ColourMode::kAsIs);
    const auto size = static_cast<size_t>(v.count());
    if (sums_.empty()) {
      if (d.encoded()) LOG_INFO("Decoding Datum");
      mean_.set_num(1), mean_.set_channels(v.channels), mean_.set_height(v.height), mean_.set_width(v.width);
      sums_.resize(size);
      LOG_INFO("Starting iteration");
    }
    if (size != sums_.size())
      badData("Incorrect data field size {} ({}), the first record has {}; a mean needs images of one size", size,
              shapeText(v), sums_.size());
    const size_t channels = static_cast<size_t>(v.channels), plane = size / channels;
    for (size_t k = 0; k < size; ++k) {
      const size_t at = v.interleaved ? k % plane * channels + k / plane : k;
      sums_[k] += v.bytes ? v.bytes[at] : v.floats[at];
    }
    if (++count_ % 10000 == 0) LOG_INFO("Processed {} files.", count_);
  }
  caffe::BlobProto finish() {
    if (count_ % 10000 != 0) LOG_INFO("Processed {} files.", count_);
    for (const double s : sums_) mean_.add_data(static_cast<float>(s / static_cast<double>(count_)));
    return mean_;
  }

 private:
  caffe::BlobProto mean_;
  std::vector<double> sums_;
  int64_t count_ = 0;
};

}  // namespace

int64_t convertImageset(const ImagesetOptions& options) { return Conversion(options).run(); }

caffe::BlobProto meanOf(const RecordSource& source) {
  Mean mean;
  for (int64_t i = 0; i < source.size(); ++i) {
    const Record record = source.read(i);
    inside([&] { return fmt::format("in record '{}' of {}", printable(record.key), source.describe()); },
           [&] {
             caffe::Datum d;
             if (!d.ParseFromArray(record.value.data(), static_cast<int>(record.value.size())))
               badData("it is no Caffe Datum ({} bytes)", record.value.size());
             mean.add(d);
           });
  }
  return mean.finish();
}

}  // namespace crema::data
