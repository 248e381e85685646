// Nodes that move, choose or add up values.
#include <algorithm>

#include "exchange/import_dims.h"

namespace crema::exchange {
namespace {

// Flattening to two axes before a Gemm is dropped, as InnerProduct does that itself.
void reshapeTo(ImportNode& n, const Dims& dims) {
  const Dims in = n.in();
  if (const auto* gemm = n.onlyReader("Gemm"); gemm && dims.size() == 2 && gemm->input(0) == n.proto().output(0))
    if (in.size() > 2 && in[0] == dims[0] && countOf(in) == countOf(dims)) {
      n.graph().flattened.insert(n.proto().output(0));
      n.graph().values[n.proto().output(0)] = {nullptr, n.blob()};
      return;
    }
  if (dims == in) return n.alias(n.blob());
  if (dims.size() == 2 && in.size() > 2 && dims[0] == in[0] && countOf(dims) == countOf(in))
    return n.result(n.layer("Flatten", {n.blob()}));
  n.reshaped(n.blob(), dims, true);
}

void reshape(ImportNode& n) { reshapeTo(n, reshapedDims(n, n.in())); }
void squeeze(ImportNode& n) { reshapeTo(n, squeezedDims(n, n.in())); }
void unsqueeze(ImportNode& n) { reshapeTo(n, unsqueezedDims(n, n.in())); }

void flatten(ImportNode& n) {
  const Dims in = n.in();
  const int64_t axis = n.i("axis", 1) == static_cast<int64_t>(in.size()) ? static_cast<int64_t>(in.size())
                                                                         : n.axis(n.i("axis", 1), in.size());
  reshapeTo(n, {countOf(Dims(in.begin(), in.begin() + axis)), countOf(Dims(in.begin() + axis, in.end()))});
}

// Only axes of length 1 may move, so that values keep their order.
void transpose(ImportNode& n) {
  const Dims in = n.in();
  Dims dims;
  std::vector<size_t> moved;
  for (const size_t from : transposedAxes(n, in.size())) {
    dims.push_back(in[from]);
    if (in[from] != 1) moved.push_back(from);
  }
  if (!std::is_sorted(moved.begin(), moved.end()))
    n.refuse(
        "it turns the axes of {}, and no layer of Caffe does; export the model without it (channels behind the batch)",
        textOf(in));
  reshapeTo(n, dims);
}

void concat(ImportNode& n) {
  std::vector<std::string> blobs;
  std::vector<Dims> parts;
  for (int i = 0; i < n.inputs(); ++i) blobs.push_back(n.blob(i)), parts.push_back(n.in(i));
  const int64_t axis = n.axis(n.i("axis", 1), n.in().size());
  joinedDims(n, parts, static_cast<size_t>(axis));
  if (blobs.size() == 1) return n.alias(blobs[0]);
  auto l = n.layer("Concat", blobs);
  l.mutable_concat_param()->set_axis(static_cast<int>(axis));
  n.result(std::move(l));
}

// Without sizes all parts are equal, the last being the rest.
Dims partsOf(ImportNode& n, int64_t length) {
  Dims sizes = n.listOrInput("split", 1);
  const int64_t parts = n.proto().output_size(), part = (length + parts - 1) / parts;
  if (n.i("num_outputs", parts) != parts) badData("{}: num_outputs is not the {} of its outputs", n.label(), parts);
  if (sizes.empty() && length % parts && !n.attribute("num_outputs"))
    badData("{}: {} in {} parts that are alike", n.label(), length, parts);
  if (sizes.empty())
    for (int64_t k = 0, left = length; k < parts; ++k, left -= sizes.back()) sizes.push_back(std::min(left, part));
  int64_t all = 0;
  for (const int64_t size : sizes) all += std::clamp<int64_t>(size, -1, INT32_MAX);
  if (static_cast<int64_t>(sizes.size()) != parts || all != length)
    badData("{}: {} outputs of {} in all, {} sizes of {}", n.label(), parts, length, sizes.size(), all);
  return sizes;
}

void split(ImportNode& n) {
  const Dims in = n.in();
  const int64_t axis = n.axis(n.i("axis", 0), in.size());
  const Dims sizes = partsOf(n, in[static_cast<size_t>(axis)]);
  if (sizes.size() == 1) return n.alias(n.blob());
  auto l = n.layer("Slice", {n.blob()});
  l.mutable_slice_param()->set_axis(static_cast<int>(axis));
  int64_t at = 0;
  for (size_t k = 0; k < sizes.size(); at += sizes[k++]) {
    if (sizes[k] < 1) n.refuse("its output {} has {} places; Slice makes no empty blob", k, sizes[k]);
    if (k) l.mutable_slice_param()->add_slice_point(static_cast<uint32_t>(at));
  }
  n.result(std::move(l), sizes.size());
}

// [from, to) of an axis; the rest goes to a Silence layer.
std::string cut(ImportNode& n, const std::string& x, int64_t axis, int64_t from, int64_t to) {
  const int64_t length = n.shape(x)[static_cast<size_t>(axis)];
  auto l = n.layer("Slice", {x});
  l.mutable_slice_param()->set_axis(static_cast<int>(axis));
  auto silence = n.layer("Silence", {});
  std::string kept;
  const std::string base = n.graph().uniqueLayer(n.proto().output(0) + "/Slice");
  const auto part = [&](int64_t end, bool wanted) {
    l.add_top(n.graph().uniqueBlob(base + (wanted ? "" : "/cut")));
    if (wanted)
      kept = l.top(l.top_size() - 1);
    else
      silence.add_bottom(l.top(l.top_size() - 1));
    if (end < length) l.mutable_slice_param()->add_slice_point(static_cast<uint32_t>(end));
  };
  if (from > 0) part(from, false);
  part(to, true);
  if (to < length) part(length, false);
  l.set_name(base);
  silence.set_name(n.graph().uniqueLayer(base + "/Silence"));
  inside([&] { return n.label(); }, [&] { n.graph().add(std::move(l)), n.graph().add(std::move(silence)); });
  return kept;
}

void slice(ImportNode& n) {
  std::string x = n.blob();
  const Dims in = n.in();
  const auto ranges = slicedRanges(n, in);
  for (size_t a = 0; a < in.size(); ++a) {
    const ImportRange& r = ranges[a];
    if (r.count == 0) n.refuse("it keeps nothing of axis {}", a);
    if (r.step != 1 && r.count > 1) n.refuse("its step is {}; Slice takes neighbours", r.step);
    if (r.count < in[a]) x = cut(n, x, static_cast<int64_t>(a), r.from, r.from + r.count);
  }
  if (x == n.blob()) return n.alias(x);
  n.result(n.layer("Split", {x}));
}

void tile(ImportNode& n) {
  const Dims in = n.in();
  Dims times = n.ints(1);
  if (n.op() == "Expand") {
    times = broadcastDims(n, in, times);
    if (times.size() > in.size()) n.refuse("{} becomes {}; Reshape it first", textOf(in), textOf(times));
    for (size_t a = 0; a < in.size(); ++a)
      if (in[a] == times[a]) times[a] = 1;
  }
  if (times.size() != in.size()) badData("{}: {} repeats for {}", n.label(), times.size(), textOf(in));
  std::string x = n.blob();
  for (size_t a = 0; a < in.size(); ++a) {
    if (times[a] == 1) continue;
    if (times[a] < 1 || times[a] > INT32_MAX) badData("{}: axis {} of {} {} times", n.label(), a, textOf(in), times[a]);
    auto l = n.layer("Tile", {x});
    l.mutable_tile_param()->set_axis(static_cast<int>(a)),
        l.mutable_tile_param()->set_tiles(static_cast<int>(times[a]));
    x = n.make(std::move(l));
  }
  if (x == n.blob()) return n.alias(x);
  n.result(n.layer("Split", {x}));
}

caffe::LayerParameter pooled(ImportNode& n, bool most) {
  auto l = n.layer("Pooling", {n.blob()});
  l.mutable_pooling_param()->set_pool(most ? caffe::PoolingParameter::MAX : caffe::PoolingParameter::AVE);
  l.mutable_pooling_param()->set_global_pooling(true);
  return l;
}

// Over planes by Pooling, over all axes from one on by Reduction.
void reduce(ImportNode& n) {
  using Op = caffe::ReductionParameter;
  if (n.op() == "ReduceMean") n.refuseWhole();
  const Dims in = n.in();
  Dims axes = n.listOrInput("axes", 1);
  if (axes.empty() && n.i("noop_with_empty_axes", 0)) {
    if (n.op() == "ReduceL1" || n.op() == "ReduceSumSquare")
      n.refuse("noop_with_empty_axes is read in two ways, as x and as its size or square; export it as Abs or Mul");
    return n.alias(n.blob());
  }
  if (axes.empty())
    for (size_t a = 0; a < in.size(); ++a) axes.push_back(static_cast<int64_t>(a));
  for (int64_t& a : axes) a = n.axis(a, in.size());
  if (axes.empty()) n.refuse("its input is a scalar");
  std::sort(axes.begin(), axes.end());
  const bool kept = n.i("keepdims", 1), mean = n.op() == "ReduceMean", most = n.op() == "ReduceMax";
  Dims dims(in.begin(), in.begin() + axes[0]);
  const Dims without = dims;
  dims.resize(in.size(), 1);
  if (in.size() == 4 && axes == Dims{2, 3} && (mean || most)) {
    if (kept) return n.result(pooled(n, most));
    n.reshaped(n.make(pooled(n, most)), without, true);
    return;
  }
  for (size_t k = 0; k < axes.size(); ++k)
    if (axes[k] != axes[0] + static_cast<int64_t>(k) || axes.back() + 1 != static_cast<int64_t>(in.size()))
      n.refuse("it reduces axes in the middle of {}; Reduction takes all from one on", textOf(in));
  if (most) n.refuse("Caffe's Reduction has no maximum");
  auto l = n.layer("Reduction", {n.blob()});
  auto* p = l.mutable_reduction_param();
  p->set_axis(static_cast<int>(axes[0]));
  p->set_operation(mean                          ? Op::MEAN
                   : n.op() == "ReduceL1"        ? Op::ASUM
                   : n.op() == "ReduceSumSquare" ? Op::SUMSQ
                                                 : Op::SUM);
  if (!kept) return n.result(std::move(l));
  n.reshaped(n.make(std::move(l)), dims, true);
}

void argMax(ImportNode& n) {
  const Dims in = n.in();
  const int64_t axis = n.axis(n.i("axis", 0), in.size());
  auto l = n.layer("ArgMax", {n.blob()});
  l.mutable_argmax_param()->set_axis(static_cast<int>(axis));
  if (!n.i("select_last_index", 0))
    n.graph().notes.push_back(n.label() + ": among equal values Caffe takes the last, ONNX the first");
  if (n.i("keepdims", 1)) return n.result(std::move(l));
  Dims dims = in;
  dims.erase(dims.begin() + axis);
  n.reshaped(n.make(std::move(l)), dims, true);
}

}  // namespace

void addImportShapes(ImportConversions& all) {
  all.insert({{"ArgMax", argMax},
              {"Concat", concat},
              {"Expand", tile},
              {"Flatten", flatten},
              {"ReduceL1", reduce},
              {"ReduceMax", reduce},
              {"ReduceMean", reduce},
              {"ReduceSum", reduce},
              {"ReduceSumSquare", reduce},
              {"Reshape", reshape},
              {"Slice", slice},
              {"Split", split},
              {"Squeeze", squeeze},
              {"Tile", tile},
              {"Transpose", transpose},
              {"Unsqueeze", unsqueeze}});
}

}  // namespace crema::exchange
