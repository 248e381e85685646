// From a record to the input of a net: crop, mirror, (pixel - mean) * scale, in Caffe's order.
//
// out[c][y][x] = (pixel[c][y + oy][x + ox] - mean) * scale, mirrored left-right when the draw says so. Crop offsets:
// random in TRAIN, floor((size - crop) / 2) in TEST. mean_file is sampled at the pixel's place in the whole image;
// mean_value: one, or one per channel. Draws are numbers of a stream named by (seed, layer, step, rank); record i of
// the batch takes block i. Any thread may call apply(). Computed in T, rounded after the difference and after the
// product, which gives Caffe's bits.
#pragma once
#include <string>
#include <vector>

#include "base/random.h"
#include "caffe.pb.h"
#include "data/decode.h"
#include "data/image.h"
#include "tensor/shape.h"

namespace crema::data {

class Transformer {
 public:
  // meanFolder: where a relative mean_file may also lie. Reads the mean file, and checks what needs no record.
  Transformer(const caffe::TransformationParameter& param, caffe::Phase phase, const std::string& meanFolder);
  // {channels, height, width} after the crop; checks mean and crop against it.
  Shape outputShape(const ImageView& first) const;
  // The image must have the shape outputShape() was given. mirror and crop: streams of this batch; item: index in the
  // batch.
  template <class T>
  void apply(const ImageView& image, const RandomStream& mirror, const RandomStream& crop, int item, T* out) const;

  // The colour mode of encoded images by force_color and force_gray; raw pixels stay as they are.
  ColourMode colour() const;

 private:
  struct Window {
    int y, x, height, width;
    bool mirror;
  };
  Window window(const ImageView& v, const RandomStream& mirror, const RandomStream& crop, int item) const;
  template <class T, class Pixel>
  void convert(const ImageView& v, const Pixel* pixels, const Window& w, T* out) const;

  caffe::TransformationParameter param_;
  caffe::Phase phase_;
  caffe::BlobProto mean_;
};

// A view of a raw record's own bytes, or of *decoded, into which an encoded one is decoded. Throws kData for sizes that
// are not positive or do not fit the values, and for an image that cannot be decoded.
ImageView viewOf(const caffe::Datum& d, Image* decoded, ColourMode colour);
void checkDatum(const caffe::Datum& d);  // checks the sizes of a raw record
std::string shapeText(const ImageView& v);

}  // namespace crema::data
