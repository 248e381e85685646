// Export of layers that move, select or count values.
#include "exchange/graph.h"

namespace crema::exchange {
namespace {

void concat(OnnxLayer& l) {
  const auto& p = l.param().concat_param();
  const int64_t axis = p.has_concat_dim() ? int64_t{p.concat_dim()} : l.in().canonicalAxis(p.axis());
  std::vector<Value> all;
  for (size_t i = 0; i < l.bottoms(); ++i) all.push_back(l.bottom(i));
  l.top(all.size() == 1 ? all[0] : l.node("Concat", all, {{"axis", axis}}));
}

void slice(OnnxLayer& l) {
  const auto& p = l.param().slice_param();
  const int axis = p.has_slice_dim() ? static_cast<int>(p.slice_dim()) : l.in().canonicalAxis(p.axis());
  if (l.tops() == 1) return l.top(l.bottom());
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < l.tops(); ++i) sizes.push_back(l.out(i)[axis]);
  const auto parts = l.nodes("Split", l.tops(), {l.bottom(), l.ints(sizes)}, {{"axis", int64_t{axis}}});
  for (size_t i = 0; i < l.tops(); ++i) l.top(i, parts[i]);
}

void split(OnnxLayer& l) {
  for (size_t i = 0; i < l.tops(); ++i) l.top(i, l.bottom());
}

void reshape(OnnxLayer& l) { l.top(l.shapedAs(l.out(), l.bottom())); }

void crop(OnnxLayer& l) {
  const auto& p = l.param().crop_param();
  const int first = l.in().canonicalAxis(p.axis());
  std::vector<int64_t> from, to, axes;
  for (int a = first; a < l.in().axes(); ++a) {
    const int64_t offset = p.offset_size() == 0 ? 0 : p.offset(p.offset_size() == 1 ? 0 : a - first);
    from.push_back(offset), to.push_back(offset + l.out()[a]), axes.push_back(a);
  }
  l.top(l.node("Slice", {l.bottom(), l.ints(from), l.ints(to), l.ints(axes)}));
}

void tile(OnnxLayer& l) {
  const auto& p = l.param().tile_param();
  std::vector<int64_t> repeats(static_cast<size_t>(l.in().axes()), 1);
  repeats[static_cast<size_t>(l.in().canonicalAxis(p.axis()))] = p.tiles();
  l.top(l.node("Tile", {l.bottom(), l.ints(repeats)}));
}

void reduction(OnnxLayer& l) {
  using Op = caffe::ReductionParameter;
  const auto& p = l.param().reduction_param();
  std::vector<int64_t> axes;
  for (int a = l.in().axes() ? l.in().canonicalAxis(p.axis()) : 0; a < l.in().axes(); ++a) axes.push_back(a);
  if (axes.empty()) l.refuse("its bottom is a scalar");
  const OnnxAttributes gone = {{"keepdims", int64_t{0}}}, with = {{"keepdims", int64_t{0}}, {"axes", axes}};
  const Value y = p.operation() == Op::SUM     ? l.node("ReduceSum", {l.bottom(), l.ints(axes)}, gone)
                  : p.operation() == Op::ASUM  ? l.node("ReduceL1", {l.bottom()}, with)
                  : p.operation() == Op::SUMSQ ? l.node("ReduceSumSquare", {l.bottom()}, with)
                                               : l.node("ReduceMean", {l.bottom()}, with);
  l.top(p.coeff() == 1 ? y : l.node("Mul", {y, l.number(p.coeff())}));
}

// Among equal values Caffe takes the larger index first, TopK the smaller; so the axis is reversed before TopK.
void argMax(OnnxLayer& l) {
  const auto& p = l.param().argmax_param();
  const bool byAxis = p.has_axis();
  const int64_t axis = byAxis ? l.in().canonicalAxis(p.axis()) : 1, k = p.top_k();
  const Value x = byAxis || l.in().axes() == 2 ? l.bottom() : l.node("Flatten", {l.bottom()}, {{"axis", int64_t{1}}});
  if (!byAxis && l.in().axes() < 2) l.refuse("its bottom has one axis");
  const int length = byAxis ? l.in()[static_cast<int>(axis)] : l.in().count(1);
  const Value backwards = l.node("Slice", {x, l.ints({-1}), l.ints({INT32_MIN}), l.ints({axis}), l.ints({-1})});
  const auto best = l.nodes("TopK", 2, {backwards, l.ints({k})}, {{"axis", axis}});
  const Value last = l.number(length - 1);
  const Value index = l.node("Cast", {best[1]}, {{"to", int64_t{::onnx::TensorProto::FLOAT}}});
  const Value indices = l.node("Sub", {last, index});
  if (byAxis) return l.top(p.out_max_val() ? best[0] : indices);
  const Value rows = p.out_max_val() ? l.node("Concat", {indices, best[0]}, {{"axis", axis}}) : indices;
  l.top(l.shapedAs(l.out(), rows));
}

void batchReindex(OnnxLayer& l) {
  const Value items = l.node("Cast", {l.bottom(1)}, {{"to", int64_t{::onnx::TensorProto::INT64}}});
  l.top(l.node("Gather", {l.bottom(), items}, {{"axis", int64_t{0}}}));
}

void parameter(OnnxLayer& l) { l.top(l.weight(0)); }

}  // namespace

void addOnnxShapes(OnnxConversions& all) {
  all.insert({{"ArgMax", argMax},
              {"BatchReindex", batchReindex},
              {"Concat", concat},
              {"Crop", crop},
              {"Flatten", reshape},
              {"Parameter", parameter},
              {"Reduction", reduction},
              {"Reshape", reshape},
              {"Slice", slice},
              {"Split", split},
              {"Tile", tile}});
}

}  // namespace crema::exchange
