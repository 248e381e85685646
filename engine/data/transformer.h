// From a record to the input of a net: crop, mirror, (pixel - mean) * scale, in Caffe's order.
//
// out[c][y][x] = (pixel[c][y + oy][x + ox] - mean) * scale, mirrored left-right when the draw says so. Crop offsets:
// random in TRAIN, floor((size - crop) / 2) in TEST. mean_file is sampled at the pixel's place in the whole image;
// mean_value: one, or one per channel. Draws are numbers of a stream named by (seed, layer, step, rank); record i of
// the batch takes block i. Any thread may call apply().
#pragma once
#include <string>
#include <vector>

#include "base/random.h"
#include "caffe.pb.h"
#include "tensor/shape.h"

namespace crema {

class Transformer {
 public:
  // meanFolder: where a relative mean_file may also lie. Reads the mean file; checks what can be checked without a
  // record.
  Transformer(const caffe::TransformationParameter& param, caffe::Phase phase, const std::string& meanFolder);
  Shape outputShape(
      const caffe::Datum& first) const;  // {channels, height, width} after the crop; checks mean and crop against it
  // The datum must have the shape outputShape() was given. mirror and crop: streams of this batch; item: index in the
  // batch.
  template <class T>
  void apply(const caffe::Datum& datum, const RandomStream& mirror, const RandomStream& crop, int item, T* out) const;

 private:
  struct Window {
    int y, x, height, width;
    bool mirror;
  };
  Window window(const caffe::Datum& d, const RandomStream& mirror, const RandomStream& crop, int item) const;
  template <class T, class Pixel>
  void convert(const caffe::Datum& d, const Window& w, Pixel pixel, T* out) const;

  caffe::TransformationParameter param_;
  caffe::Phase phase_;
  caffe::BlobProto mean_;
};

void checkDatum(const caffe::Datum& d);  // sizes positive and equal to the number of values; kData otherwise
std::string shapeText(const caffe::Datum& d);

}  // namespace crema
