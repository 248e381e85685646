// Nodes that move, choose or add up values.
#include <algorithm>

#include "cli/onnx/import_graph.h"

namespace crema::cli {
namespace {

// Two axes in front of a Gemm are its InnerProduct's own doing.
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

void reshape(ImportNode& n) {
  const Dims in = n.in();
  Dims dims = n.listOrInput("shape", 1);
  int64_t known = 1, *open = nullptr;
  for (size_t a = 0; a < dims.size(); ++a) {
    if (dims[a] == 0 && !n.i("allowzero", 0)) {
      if (a >= in.size()) badData("{}: axis {} of {}", n.label(), a, textOf(in));
      dims[a] = in[a];
    }
    if (dims[a] == -1 && !open)
      open = &dims[a];
    else if (dims[a] < 0 || dims[a] > INT32_MAX || (known *= dims[a]) > INT32_MAX)
      badData("{}: a shape with {}", n.label(), dims[a]);
  }
  if (open) *open = known ? countOf(in) / known : 0;
  reshapeTo(n, dims);
}

void flatten(ImportNode& n) {
  const Dims in = n.in();
  const int64_t axis = n.i("axis", 1) == static_cast<int64_t>(in.size()) ? static_cast<int64_t>(in.size())
                                                                         : n.axis(n.i("axis", 1), in.size());
  reshapeTo(n, {countOf(Dims(in.begin(), in.begin() + axis)), countOf(Dims(in.begin() + axis, in.end()))});
}

void squeeze(ImportNode& n) {
  const Dims in = n.in();
  Dims axes = n.listOrInput("axes", 1), dims;
  for (int64_t& a : axes) a = n.axis(a, in.size());
  for (size_t a = 0; a < in.size(); ++a) {
    const bool named = std::find(axes.begin(), axes.end(), static_cast<int64_t>(a)) != axes.end();
    if (in[a] != 1 || (!axes.empty() && !named)) dims.push_back(in[a]);
  }
  reshapeTo(n, dims);
}

void unsqueeze(ImportNode& n) {
  Dims dims = n.in(), axes = n.listOrInput("axes", 1);
  for (int64_t& a : axes) a = n.axis(a, n.in().size() + axes.size());
  std::sort(axes.begin(), axes.end());
  for (const int64_t a : axes) dims.insert(dims.begin() + std::min<int64_t>(a, static_cast<int64_t>(dims.size())), 1);
  reshapeTo(n, dims);
}

// Only axes of 1 may change places: then nothing moves.
void transpose(ImportNode& n) {
  const Dims in = n.in();
  Dims order = n.list("perm"), dims, moved;
  if (order.empty())
    for (size_t a = in.size(); a-- > 0;) order.push_back(static_cast<int64_t>(a));
  if (order.size() != in.size()) badData("{}: perm has {} axes of {}", n.label(), order.size(), in.size());
  for (const int64_t a : order) {
    const int64_t from = n.axis(a, in.size());
    dims.push_back(in[static_cast<size_t>(from)]);
    if (dims.back() != 1) moved.push_back(from);
  }
  if (!std::is_sorted(moved.begin(), moved.end()))
    n.refuse(
        "it turns the axes of {}, and no layer of Caffe does; export the model without it (channels behind the batch)",
        textOf(in));
  reshapeTo(n, dims);
}

void concat(ImportNode& n) {
  std::vector<std::string> blobs;
  for (int i = 0; i < n.inputs(); ++i) blobs.push_back(n.blob(i));
  if (blobs.size() == 1) return n.alias(blobs[0]);
  auto l = n.layer("Concat", blobs);
  l.mutable_concat_param()->set_axis(static_cast<int>(n.axis(n.i("axis", 1), n.in().size())));
  n.result(std::move(l));
}

void split(ImportNode& n) {
  const Dims in = n.in();
  const int64_t axis = n.axis(n.i("axis", 0), in.size()), length = in[static_cast<size_t>(axis)];
  Dims sizes = n.listOrInput("split", 1);
  const int64_t parts = n.proto().output_size();
  if (sizes.empty())
    for (int64_t left = length, k = 0; k < parts; left -= sizes.back(), ++k)
      sizes.push_back(std::min(left, (length + parts - 1) / parts));
  if (static_cast<int64_t>(sizes.size()) != parts) badData("{}: {} sizes, {} outputs", n.label(), sizes.size(), parts);
  if (parts == 1) return n.alias(n.blob());
  auto l = n.layer("Slice", {n.blob()});
  l.mutable_slice_param()->set_axis(static_cast<int>(axis));
  int64_t at = 0;
  for (size_t k = 0; k + 1 < sizes.size(); ++k) {
    at += std::clamp<int64_t>(sizes[k], 0, INT32_MAX);
    l.mutable_slice_param()->add_slice_point(static_cast<uint32_t>(std::min<int64_t>(at, INT32_MAX)));
  }
  n.result(std::move(l), static_cast<size_t>(parts));
}

// [from, to) of an axis; what is cut off goes to a Silence.
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
  const Dims in = n.in();
  const auto from = n.listOrInput("starts", 1), to = n.listOrInput("ends", 2), steps = n.has(4) ? n.ints(4) : Dims{};
  Dims axes = n.listOrInput("axes", 3);
  if (axes.empty())
    for (size_t a = 0; a < from.size(); ++a) axes.push_back(static_cast<int64_t>(a));
  if (from.size() != axes.size() || to.size() != axes.size()) badData("{}: starts, ends and axes differ", n.label());
  for (const int64_t step : steps)
    if (step != 1) n.refuse("its step is {}; Slice takes neighbours", step);
  std::string x = n.blob();
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t axis = n.axis(axes[k], in.size()), length = in[static_cast<size_t>(axis)];
    const auto at = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + length : v, 0, length); };
    const int64_t begin = at(from[k]), end = at(to[k]);
    if (begin >= end) n.refuse("it keeps nothing of axis {}", axis);
    if (begin > 0 || end < length) x = cut(n, x, axis, begin, end);
  }
  if (x == n.blob()) return n.alias(x);
  n.result(n.layer("Split", {x}));
}

void tile(ImportNode& n) {
  const Dims in = n.in();
  Dims times = n.ints(1);
  if (n.op() == "Expand") {
    if (times.size() < in.size()) times.insert(times.begin(), in.size() - times.size(), 1);
    if (times.size() > in.size()) n.refuse("{} becomes {}; Reshape it first", textOf(in), textOf(times));
    for (size_t a = 0; a < in.size(); ++a)
      times[a] = times[a] == in[a] || times[a] == 1 ? 1 : in[a] == 1 ? times[a] : 0;
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
  const Dims in = n.in();
  Dims axes = n.listOrInput("axes", 1);
  if (axes.empty() && n.i("noop_with_empty_axes", 0)) return n.alias(n.blob());
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

}  // namespace crema::cli
