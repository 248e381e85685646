// Fillers. fan_in = count / shape(0), fan_out = count / shape(1) (count for one axis), n = one of them or their mean:
//   constant v · uniform [min, max) · gaussian(mean, std), sparse: kept with probability sparse / shape(0)
//   positive_unitball: uniform [0,1), every item scaled to sum 1 · xavier U(-sqrt(3/n), sqrt(3/n)) (Glorot & Bengio
//   2010) msra N(0, sqrt(2/n)) (He et al. 2015) · bilinear: f = ceil(w/2), c = (w-1)/(2f), (1-|x/f-c|)(1-|y/f-c|)
// Element i takes number i of the stream keyed by the parameter's name: the same weights on every machine and rank and
// for any number of threads.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layers/layer.h"

namespace crema::layers {
namespace {

double fan(const caffe::FillerParameter& f, const Shape& s) {
  const int count = s.count();
  const double in = s.axes() && s[0] ? static_cast<double>(count) / s[0] : count;
  const double out = s.axes() > 1 && s[1] ? static_cast<double>(count) / s[1] : count;
  switch (f.variance_norm()) {
    case caffe::FillerParameter::FAN_OUT:
      return out;
    case caffe::FillerParameter::AVERAGE:
      return (in + out) / 2;
    default:
      return in;
  }
}

template <class T, class F>
void each(Blob& blob, F value) {
  T* data = blob.mutableData<T>();
  for (int i = 0; i < blob.count(); ++i) data[i] = static_cast<T>(value(i));
}

template <class T>
void gaussian(const caffe::FillerParameter& f, const RandomStream& r, double mean, double deviation, Blob& blob) {
  const int count = blob.count();
  const double keep =
      f.sparse() >= 0 && blob.shape().axes() && blob.shape()[0] ? static_cast<double>(f.sparse()) / blob.shape()[0] : 1;
  each<T>(blob, [&](int i) {
    const double g = mean + deviation * r.gaussian(static_cast<uint64_t>(i));
    return f.sparse() >= 0 && r.uniform(static_cast<uint64_t>(count) + static_cast<uint64_t>(i)) >= keep ? 0.0 : g;
  });
}

template <class T>
void unitBall(const RandomStream& r, Blob& blob) {
  each<T>(blob, [&](int i) { return r.uniform(static_cast<uint64_t>(i)); });
  const int items = blob.shape().axes() ? blob.shape()[0] : 1, size = items ? blob.count() / items : 0;
  for (int n = 0; n < items; ++n) {
    T* row = blob.mutableData<T>() + static_cast<int64_t>(n) * size;
    double total = 0;
    for (int i = 0; i < size; ++i) total += row[i];
    for (int i = 0; i < size; ++i) row[i] = static_cast<T>(row[i] / total);
  }
}

template <class T>
void bilinear(Blob& blob) {
  const int w = blob.shape()[3];
  const double f = std::ceil(w / 2.0), c = (w - 1) / (2 * f);
  each<T>(blob, [&](int i) { return (1 - std::fabs(i % w / f - c)) * (1 - std::fabs(i / w % w / f - c)); });
}

template <class T>
void fillTyped(const caffe::FillerParameter& f, const RandomStream& r, Blob& blob) {
  const std::string& type = f.type();
  const double n = fan(f, blob.shape());
  const auto uniform = [&](double low, double high) {
    each<T>(blob, [&](int i) { return low + (high - low) * r.uniform(static_cast<uint64_t>(i)); });
  };
  if (type == "constant") return blob.fillData(f.value());
  if (type == "uniform") return uniform(f.min(), f.max());
  if (type == "xavier") return uniform(-std::sqrt(3 / n), std::sqrt(3 / n));
  if (type == "msra") return gaussian<T>(f, r, 0, std::sqrt(2 / n), blob);
  if (type == "positive_unitball") return unitBall<T>(r, blob);
  if (type == "bilinear") return bilinear<T>(blob);
  if (type == "gaussian") return gaussian<T>(f, r, f.mean(), f.std(), blob);
}

}  // namespace

void checkFiller(const caffe::FillerParameter& filler, const Shape& s) {
  static const char* const kTypes[] = {"bilinear",          "constant", "gaussian", "msra",
                                       "positive_unitball", "uniform",  "xavier"};
  const std::string& type = filler.type();
  if (std::find(std::begin(kTypes), std::end(kTypes), type) == std::end(kTypes))
    invalid("unknown filler type '{}' (known types: {})", type, fmt::join(kTypes, ", "));
  if (filler.sparse() >= 0 && type != "gaussian") invalid("`sparse` belongs to the gaussian filler, not to '{}'", type);
  if (type == "gaussian" && !(filler.std() > 0)) invalid("the gaussian filler needs std > 0, not {}", filler.std());
  if (type == "bilinear" && (s.axes() != 4 || s[2] != s[3]))
    invalid("the bilinear filler needs a 4-D blob with square kernels, not {}", s.brief());
}

void fill(const caffe::FillerParameter& filler, uint64_t seed, std::string_view name, Blob& blob) {
  checkFiller(filler, blob.shape());
  RandomKey key;
  key.seed = seed;
  key.purpose = RandomPurpose::kFiller;
  key.name = hashName(name);
  const RandomStream stream(key);
  withType(blob.dtype(), [&]<class T>() { fillTyped<T>(filler, stream, blob); });
}

}  // namespace crema::layers
