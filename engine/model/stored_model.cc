#include "model/stored_model.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <climits>
#include <string>

namespace crema::model {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

constexpr uint32_t kLengthDelimited = 2;  // protobuf's wire type of messages, strings and packed numbers

struct Field {
  uint32_t tag = 0;
  std::string_view whole;  // with its tag
  std::string_view bytes;  // of one with a length, without that
  uint32_t number() const { return tag >> 3; }
  bool hasLength() const { return (tag & 7) == kLengthDelimited; }
};

// The fields of a message in their order; nothing when they do not end where it does, or have groups.
std::optional<std::vector<Field>> fieldsOf(std::string_view message) {
  std::vector<Field> fields;
  if (message.size() > INT_MAX) return std::nullopt;
  CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()), static_cast<int>(message.size()));
  for (;;) {
    const auto from = static_cast<size_t>(in.CurrentPosition());
    Field field;
    field.tag = in.ReadTag();
    if (field.tag == 0) break;
    uint64_t number = 0;
    uint32_t size = 0;
    bool read = false;
    switch (field.tag & 7) {
      case 0:
        read = in.ReadVarint64(&number);
        break;
      case 1:
        read = in.Skip(8);
        break;
      case kLengthDelimited:
        read = in.ReadVarint32(&size);
        field.bytes = message.substr(static_cast<size_t>(in.CurrentPosition()), size);
        read = read && field.bytes.size() == size && in.Skip(static_cast<int>(size));
        break;
      case 5:
        read = in.Skip(4);
        break;
      default:
        break;
    }
    if (!read) return std::nullopt;
    field.whole = message.substr(from, static_cast<size_t>(in.CurrentPosition()) - from);
    fields.push_back(field);
  }
  if (!in.ConsumedEntireMessage()) return std::nullopt;
  return fields;
}

// Takes the values out of a blob where they are one run of packed floats: returns them, and appends the rest to `rest`, but
// for the gradient, which nobody reads. Empty, with nothing appended, where the message keeps them.
std::string_view takeValues(std::string_view blob, std::string* rest) {
  const auto fields = fieldsOf(blob);
  if (!fields) return {};
  std::string_view values;
  for (const Field& f : *fields) {
    if (f.number() == caffe::BlobProto::kDoubleDataFieldNumber) return {};
    if (f.number() != caffe::BlobProto::kDataFieldNumber) continue;
    if (!f.hasLength() || !values.empty() || f.bytes.empty() || f.bytes.size() % sizeof(float) != 0) return {};
    values = f.bytes;
  }
  if (!values.empty())
    for (const Field& f : *fields)
      if (f.number() != caffe::BlobProto::kDataFieldNumber && f.number() != caffe::BlobProto::kDiffFieldNumber)
        rest->append(f.whole);
  return values;
}

void appendField(uint32_t tag, std::string_view bytes, std::string* to) {
  google::protobuf::io::StringOutputStream stream(to);
  CodedOutputStream out(&stream);
  out.WriteTag(tag);
  out.WriteVarint32(static_cast<uint32_t>(bytes.size()));
  out.WriteRaw(bytes.data(), static_cast<int>(bytes.size()));
}

// The values of each blob of a layer; appends the rest of the layer's message to `rest`.
std::optional<std::vector<std::string_view>> takeLayer(std::string_view layer, uint32_t blobs, std::string* rest) {
  const auto fields = fieldsOf(layer);
  if (!fields) return std::nullopt;
  std::vector<std::string_view> all;
  for (const Field& f : *fields) {
    const bool isBlob = f.number() == blobs && f.hasLength();
    std::string blob;
    const std::string_view values = isBlob ? takeValues(f.bytes, &blob) : std::string_view();
    if (isBlob) all.push_back(values);
    if (values.empty())
      rest->append(f.whole);
    else
      appendField(f.tag, blob, rest);
  }
  return all;
}

}  // namespace

std::optional<StoredModel> storedModel(std::string_view bytes) {
  const auto fields = fieldsOf(bytes);
  if (!fields) return std::nullopt;
  StoredModel stored;
  std::string rest;
  uint32_t kind = 0;
  for (const Field& f : *fields) {
    const bool isLayer = f.number() == caffe::NetParameter::kLayerFieldNumber,
               isOlder = f.number() == caffe::NetParameter::kLayersFieldNumber;
    if (!(isLayer || isOlder) || !f.hasLength()) {
      rest.append(f.whole);
      continue;
    }
    if (kind != 0 && kind != f.number()) return std::nullopt;
    kind = f.number();
    std::string layer;
    const uint32_t blobs = isLayer ? uint32_t{caffe::LayerParameter::kBlobsFieldNumber}
                                   : uint32_t{caffe::V1LayerParameter::kBlobsFieldNumber};
    const auto values = takeLayer(f.bytes, blobs, &layer);
    if (!values) return std::nullopt;
    stored.values.push_back(*values);
    appendField(f.tag, layer, &rest);
  }
  if (!stored.net.ParseFromString(rest)) return std::nullopt;
  return stored;
}

}  // namespace crema::model
