// Blobs in files: caffe.BlobProto, with `shape` today and num/channels/height/width in old models.
#include <algorithm>

#include "layers/layer.h"

namespace crema::layers {

Shape shapeOf(const caffe::BlobProto& proto) {
  if (proto.has_num() || proto.has_channels() || proto.has_height() || proto.has_width())
    return Shape({proto.num(), proto.channels(), proto.height(), proto.width()});
  std::vector<int> dims;
  for (int64_t d : proto.shape().dim()) {
    if (d < 0 || d > INT32_MAX) badData("a stored blob has dimension {}", d);
    dims.push_back(static_cast<int>(d));
  }
  return Shape(std::move(dims));
}

bool shapeMatches(const caffe::BlobProto& proto, const Shape& shape) {
  const bool legacy = proto.has_num() || proto.has_channels() || proto.has_height() || proto.has_width();
  if (!legacy) return shapeOf(proto) == shape;
  if (shape.axes() > 4) return false;
  const Shape stored = shapeOf(proto);
  for (int i = 1; i <= 4; ++i) {
    const int wanted = i <= shape.axes() ? shape[-i] : 1;
    if (stored[-i] != wanted) return false;
  }
  return true;
}

void checkStoredCount(int64_t values, const Blob& place) {
  if (values != place.count())
    badData("a stored blob has {} values, its place {} ({})", values, place.count(), place.shape().brief());
}

void fromProto(const caffe::BlobProto& proto, Blob& blob) {
  const bool wide = proto.double_data_size() > 0;
  checkStoredCount(wide ? proto.double_data_size() : proto.data_size(), blob);
  withType(blob.dtype(), [&]<class T>() {
    T* to = blob.mutableData<T>();
    if (wide)
      std::transform(proto.double_data().begin(), proto.double_data().end(), to,
                     [](double v) { return static_cast<T>(v); });
    else
      std::copy(proto.data().begin(), proto.data().end(), to);
  });
}

void toProto(const Blob& blob, bool withDiff, caffe::BlobProto* proto) {
  proto->Clear();
  for (int d : blob.shape().dims()) proto->mutable_shape()->add_dim(d);
  if (blob.shape().axes() == 0) proto->mutable_shape();
  if (blob.dtype() == DType::kFloat32) {
    proto->mutable_data()->Add(blob.data<float>(), blob.data<float>() + blob.count());
    if (withDiff) proto->mutable_diff()->Add(blob.diff<float>(), blob.diff<float>() + blob.count());
  } else {
    proto->mutable_double_data()->Add(blob.data<double>(), blob.data<double>() + blob.count());
    if (withDiff) proto->mutable_double_diff()->Add(blob.diff<double>(), blob.diff<double>() + blob.count());
  }
}

}  // namespace crema::layers
