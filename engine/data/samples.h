// Conversion of a record into one sample for each top of a data layer.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "caffe.pb.h"
#include "data/source.h"
#include "tensor/shape.h"

namespace crema::data {

// The random numbers of one batch: a stream per purpose and top, named by (seed, layer, step, rank); sample i takes
// block i.
struct SampleRandom {
  uint64_t seed = 1, step = 0;
  uint32_t rank = 0;
  std::string layer;
  RandomStream stream(RandomPurpose purpose, const std::string& top) const;
};

// A sample that cannot be decoded; callers skip and count it, or fail.
class Undecodable : public Error {
 public:
  explicit Undecodable(const std::string& why) : Error(ErrorKind::kData, "the image " + why) {}
};

class SampleMaker {
 public:
  virtual ~SampleMaker() = default;
  size_t tops() const { return shapes_.size(); }
  const Shape& shape(size_t top) const { return shapes_[top]; }  // of one sample, without the batch axis
  // Writes sample `item` of each top. Throws kData when the record is of another kind or shape, Undecodable for a
  // damaged image. Any thread.
  virtual void make(const Record& record, const SampleRandom& random, int item,
                    const std::vector<float*>& out) const = 0;
  // Whether every record has a shape of its own; batches are of one record then, and makeOne() makes them.
  virtual bool varies() const { return false; }
  virtual void makeOne(const Record&, const SampleRandom&, std::vector<Shape>*,
                       std::vector<std::vector<float>>*) const {
    internal("samples of one shape are made into their batch");
  }

 protected:
  std::vector<Shape> shapes_;
};

struct ImageOptions {
  caffe::TransformationParameter transform;
  caffe::Phase phase = caffe::TEST;
  std::string folder;                       // where a relative mean_file may also lie
  int channels = 0, height = 0, width = 0;  // of the image before the crop; 0: from the first record
  bool resize = false;                      // to height x width when the record is larger or smaller
  bool varies = false;                      // SampleMaker::varies(), for Datum records
};

// Datum records: tops data and, when wanted, label. `first` gives the shape where the options do not.
std::unique_ptr<SampleMaker> datumSamples(const ImageOptions& options, bool label, const RecordSource& source);
// Rows of MemoryData: fields label and image.
std::unique_ptr<SampleMaker> imageRowSamples(const ImageOptions& options);
// Rows of CoSData: one field per top. invalid() when cos_data_param contradicts itself.
std::unique_ptr<SampleMaker> cosRowSamples(const caffe::CoSDataParameter& param, caffe::Phase phase,
                                           const std::string& folder, bool resize);

}  // namespace crema::data
