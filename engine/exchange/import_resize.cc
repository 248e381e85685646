// Resize and Upsample of planes to their nearest neighbours, by integer factors: a Deconvolution per channel with a
// kernel of ones as large as its stride f. Element i of its result is element floor(i / f) of its input; a node whose
// coordinates and rounding select another element for any i is refused.
#include <algorithm>
#include <cmath>

#include "exchange/import_graph.h"

namespace crema::exchange {
namespace {

constexpr float kMostFactor = 64;
constexpr int64_t kMostPlaces = 1 << 24;  // floats are exact up to here

struct Nearest {
  std::string coordinates, rounding;

  float coordinate(float i, float in, float out) const {
    const float f = out / in;
    if (coordinates == "asymmetric") return i / f;
    if (coordinates == "align_corners") return out == 1 ? 0 : i * (in - 1) / (out - 1);
    if (coordinates == "tf_half_pixel_for_nn") return (i + 0.5f) / f;
    if (coordinates == "pytorch_half_pixel" && out == 1) return 0;
    return (i + 0.5f) / f - 0.5f;  // half_pixel; half_pixel_symmetric, as no factor is rounded
  }
  float place(float x) const {
    if (rounding == "floor") return std::floor(x);
    if (rounding == "ceil") return std::ceil(x);
    return rounding == "round_prefer_ceil" ? std::floor(x + 0.5f) : std::ceil(x - 0.5f);
  }
  bool isCut(int64_t in, int64_t factor) const {
    if (in * factor > kMostPlaces) return false;
    const auto length = static_cast<float>(in), all = static_cast<float>(in * factor);
    for (int64_t i = 0; factor > 1 && i < in * factor; ++i) {
      const float at = std::clamp(place(coordinate(static_cast<float>(i), length, all)), 0.f, length - 1);
      if (at != static_cast<float>(i / factor)) return false;
    }
    return true;
  }
};

// Upsample, and Resize of opset 10, have no attributes for it: floor(i / f).
Nearest nearestOf(ImportNode& n) {
  if (n.op() == "Upsample" || n.graph().opset < 11) return {"asymmetric", "floor"};
  const Nearest said{n.s("coordinate_transformation_mode", "half_pixel"), n.s("nearest_mode", "round_prefer_floor")};
  for (const char* known : {"asymmetric", "align_corners", "tf_half_pixel_for_nn", "pytorch_half_pixel", "half_pixel",
                            "half_pixel_symmetric"})
    if (said.coordinates == known)
      for (const char* round : {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"})
        if (said.rounding == round) return said;
  n.refuse("coordinate_transformation_mode '{}' with nearest_mode '{}' is not read; export it with asymmetric, floor",
           said.coordinates, said.rounding);
}

// One factor for each axis, from `scales` or `sizes`, which may be for some `axes` alone.
std::vector<float> factorsOf(ImportNode& n, const Dims& in) {
  const bool old = n.op() == "Upsample" || n.graph().opset < 11;
  const auto* listed = n.attribute("scales");  // opset 7
  const int at = old ? 1 : 2;
  std::vector<float> given;
  if (listed) given.assign(listed->floats().begin(), listed->floats().end());
  if (n.has(at)) given = n.floats(at);
  Dims axes = n.list("axes");
  if (axes.empty())
    for (size_t a = 0; a < in.size(); ++a) axes.push_back(static_cast<int64_t>(a));
  const bool sizes = given.empty() && !old && n.has(3);
  if (sizes && n.s("keep_aspect_ratio_policy", "stretch") != "stretch")
    n.refuse("its keep_aspect_ratio_policy is '{}'; export it with scales", n.s("keep_aspect_ratio_policy", ""));
  if (sizes)
    for (const int64_t to : n.ints(3)) given.push_back(static_cast<float>(to));
  if (given.size() != axes.size()) badData("{}: {} factors for {} axes", n.label(), given.size(), axes.size());
  std::vector<float> factors(in.size(), 1);
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(n.axis(axes[k], in.size()));
    factors[axis] = sizes ? given[k] / static_cast<float>(in[axis]) : given[k];
  }
  return factors;
}

void resize(ImportNode& n) {
  const Dims in = n.in();
  const auto factors = factorsOf(n, in);
  if (n.s("mode", "nearest") != "nearest" || in.size() != 4 || factors[0] != 1 || factors[1] != 1)
    n.refuse("Caffe enlarges planes by nearest neighbours only; export it with ConvTranspose");
  const Nearest nearest = nearestOf(n);
  auto l = n.layer("Deconvolution", {n.blob()});
  auto* p = l.mutable_convolution_param();
  Dims dims = {in[1], 1};
  for (const size_t a : {size_t{2}, size_t{3}}) {
    if (factors[a] != std::floor(factors[a]) || factors[a] < 1 || factors[a] > kMostFactor)
      n.refuse("a factor of {}; whole ones up to {} can be expressed", factors[a], kMostFactor);
    dims.push_back(static_cast<int64_t>(factors[a]));
    if (!nearest.isCut(in[a], dims.back()))
      n.refuse(
          "{} with nearest_mode {} takes other neighbours, at factor {}, than a Deconvolution; export it with "
          "coordinate_transformation_mode asymmetric, nearest_mode floor",
          nearest.coordinates, nearest.rounding, dims.back());
    p->add_kernel_size(static_cast<uint32_t>(dims.back())), p->add_stride(static_cast<uint32_t>(dims.back()));
  }
  p->set_num_output(static_cast<uint32_t>(in[1])), p->set_group(static_cast<uint32_t>(in[1])), p->set_bias_term(false);
  l.add_param()->set_lr_mult(0);
  n.weights(l, dims, std::vector<float>(static_cast<size_t>(countOf(dims)), 1.f));
  n.result(std::move(l));
}

}  // namespace

void addImportResize(ImportConversions& all) { all.insert({{"Resize", resize}, {"Upsample", resize}}); }

}  // namespace crema::exchange
