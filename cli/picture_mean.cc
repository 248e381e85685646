#include "cli/picture_mean.h"

#include <charconv>
#include <cstring>
#include <regex>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "caffe.pb.h"
#include "layers/layer.h"
#include "model/proto_io.h"
#include "tensor/blob.h"

namespace crema::cli {
namespace {

// Sums in double over each of `channels` equal parts.
template <class T>
std::vector<float> meansOf(const T* values, size_t count, int channels) {
  const size_t each = count / static_cast<size_t>(channels);
  std::vector<float> means;
  for (int c = 0; c < channels; ++c) {
    double sum = 0;
    for (size_t i = 0; i < each; ++i) {
      T value;
      std::memcpy(&value, values + static_cast<size_t>(c) * each + i, sizeof value);  // the bytes may be unaligned
      sum += static_cast<double>(value);
    }
    means.push_back(static_cast<float>(sum / static_cast<double>(each)));
  }
  return means;
}

[[noreturn]] void otherChannels(const std::string& path, int have, int want) {
  invalid("the mean {} has {} channel(s), the net takes pictures of {}", path, have, want);
}

std::vector<float> ofBinaryproto(const std::string& path, int channels) {
  const auto proto = model::readBinary<caffe::BlobProto>(path);
  const Shape shape = layers::shapeOf(proto);
  const int have = shape.axes() >= 3 ? shape[shape.axes() - 3] : 0;
  if (have != channels || shape.count() == 0) otherChannels(path, have, channels);
  Blob blob(shape, DType::kFloat32);
  layers::fromProto(proto, blob);
  return meansOf(blob.data<float>(), static_cast<size_t>(blob.count()), channels);
}

// "\x93NUMPY", version, the header's length (2 bytes, or 4 from version 2 on), a dictionary as text, values.
std::vector<float> ofNpy(const std::string& path, int channels) {
  const std::string bytes = readFile(path);
  if (bytes.size() < 12 || !bytes.starts_with("\x93NUMPY")) badData("{} is no .npy file", path);
  const size_t lengthBytes = bytes[6] == 1 ? 2 : 4;
  size_t length = 0;
  for (size_t i = lengthBytes; i-- > 0;) length = length << 8 | static_cast<unsigned char>(bytes[8 + i]);
  const size_t begin = 8 + lengthBytes + length;
  constexpr size_t kMostHeader = 4096;  // std::regex recurses as deep as its text is long
  if (begin > bytes.size() || length > kMostHeader) badData("{} is cut short, or no .npy file", path);
  const std::string header = bytes.substr(8 + lengthBytes, length);
  std::smatch m;
  static const std::regex pattern(R"('descr': *'<f([48])'.*'fortran_order': *False.*'shape': *\((\d+),([ 0-9,]*)\))");
  if (!std::regex_search(header, m, pattern)) badData("{} holds no float32 or float64 array with channels first", path);
  const int have = std::atoi(m[1 + 1].str().c_str());
  const size_t size = m[1] == "4" ? 4 : 8, count = (bytes.size() - begin) / size;
  if (have != channels) otherChannels(path, have, channels);
  if (count == 0 || count % static_cast<size_t>(channels)) badData("{} is cut short", path);
  const char* values = bytes.data() + begin;
  return size == 4 ? meansOf(reinterpret_cast<const float*>(values), count, channels)
                   : meansOf(reinterpret_cast<const double*>(values), count, channels);
}

}  // namespace

std::vector<float> channelMeans(const std::string& mean, int channels) {
  const auto count = static_cast<size_t>(channels);
  if (mean.empty()) return std::vector<float>(count, 0.f);
  if (mean.ends_with(".npy")) return ofNpy(mean, channels);
  std::vector<float> values;
  for (const std::string& word : splitList(mean)) {
    float value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) return ofBinaryproto(mean, channels);
    values.push_back(value);
  }
  if (values.size() == 1) values.resize(count, values[0]);
  if (values.size() != count)
    invalid("-mean {} has {} values; give one, or {}, one per channel", mean, values.size(), channels);
  return values;
}

}  // namespace crema::cli
