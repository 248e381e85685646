// Nodes that compute with known values: shapes, as PyTorch writes `x.view(x.size(0), -1)`, and weights turned before
// use.
#include <algorithm>
#include <cmath>

#include "cli/onnx/import_graph.h"

namespace crema::cli {
namespace {

using Tensor = ::onnx::TensorProto;

// With new dims, the values as they are.
Tensor withDims(Tensor t, const Dims& dims) {
  t.clear_dims();
  for (const int64_t d : dims) t.add_dims(d);
  return t;
}

void constant(ImportNode& n) {
  if (const auto* t = n.attribute("value"))
    n.constantResult(t->t());
  else if (const auto* f = n.attribute("value_float"))
    n.constantResult(tensorOf({}, std::vector<float>{f->f()}));
  else if (const auto* i = n.attribute("value_int"))
    n.constantResult(tensorOf({}, std::vector<int64_t>{i->i()}));
  else if (const auto* fs = n.attribute("value_floats"))
    n.constantResult(tensorOf({fs->floats_size()}, std::vector<float>(fs->floats().begin(), fs->floats().end())));
  else if (const auto* is = n.attribute("value_ints"))
    n.constantResult(tensorOf({is->ints_size()}, std::vector<int64_t>(is->ints().begin(), is->ints().end())));
  else
    n.refuse("its value is of a kind that is not read; export the model with values of numbers");
}

void shape(ImportNode& n) {
  const Dims dims = n.constant(0) ? dimsOf(n.tensor(0)) : n.in();
  const auto count = static_cast<int64_t>(dims.size());
  const auto at = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + count : v, 0, count); };
  const int64_t from = at(n.i("start", 0)), to = std::max(from, at(n.i("end", count)));
  const Dims part(dims.begin() + from, dims.begin() + to);
  n.constantResult(tensorOf({to - from}, part));
}

void identity(ImportNode& n) { n.constantResult(n.tensor(0)); }

void cast(ImportNode& n) {
  const int64_t to = n.i("to", 0);
  const Dims dims = dimsOf(n.tensor(0));
  if (to == Tensor::INT64 || to == Tensor::INT32 || to == Tensor::BOOL) {
    std::vector<int64_t> all;
    if (isInteger(n.tensor(0)))
      all = n.ints(0);
    else
      for (const float v : n.floats(0)) all.push_back(std::fabs(v) < 9e18f ? static_cast<int64_t>(v) : 0);
    return n.constantResult(tensorOf(dims, all));
  }
  n.constantResult(tensorOf(dims, n.floats(0)));
}

// Axis 0 of what is a list: shapes are.
void gather(ImportNode& n) {
  const auto list = n.ints(0), index = n.ints(1);
  if (dimsOf(n.tensor(0)).size() != 1 || n.i("axis", 0) != 0) n.refuse("it gathers of constants with several axes");
  std::vector<int64_t> all;
  for (const int64_t i : index) all.push_back(list[static_cast<size_t>(n.axis(i, list.size()))]);
  n.constantResult(tensorOf(dimsOf(n.tensor(1)), all));
}

template <class V>
::onnx::TensorProto joined(ImportNode& n, std::vector<V> (ImportNode::*values)(int) const) {
  std::vector<V> all;
  for (int i = 0; i < n.inputs(); ++i) {
    if (dimsOf(n.tensor(i)).size() != 1) n.refuse("it joins constants with several axes");
    const auto part = (n.*values)(i);
    all.insert(all.end(), part.begin(), part.end());
  }
  return tensorOf({static_cast<int64_t>(all.size())}, all);
}
void concat(ImportNode& n) {
  bool integers = true;
  for (int i = 0; i < n.inputs(); ++i) integers &= isInteger(n.tensor(i));
  n.constantResult(integers ? joined(n, &ImportNode::ints) : joined(n, &ImportNode::floats));
}

// Rows of axis 0, forwards or backwards.
void slice(ImportNode& n) {
  const auto all = n.ints(0), from = n.listOrInput("starts", 1), to = n.listOrInput("ends", 2);
  const auto axes = n.listOrInput("axes", 3), steps = n.has(4) ? n.ints(4) : Dims{1};
  Dims dims = dimsOf(n.tensor(0));
  if (dims.empty() || from.size() != 1 || to.size() != 1 || steps.size() != 1 || (steps[0] != 1 && steps[0] != -1) ||
      (!axes.empty() && axes != Dims{0}))
    n.refuse("it cuts a constant on several axes");
  const int64_t rows = dims[0], low = steps[0] < 0 ? -1 : 0, high = steps[0] < 0 ? rows - 1 : rows;
  const auto at = [&](int64_t v) { return v < -rows ? low : std::clamp<int64_t>(v < 0 ? v + rows : v, low, high); };
  const auto row = static_cast<size_t>(rows ? countOf(dims) / rows : 0);
  std::vector<int64_t> kept;
  dims[0] = 0;
  for (int64_t r = at(from[0]); (at(to[0]) - r) * steps[0] > 0; r += steps[0], ++dims[0])
    for (size_t k = 0; k < row; ++k) kept.push_back(all[static_cast<size_t>(r) * row + k]);
  n.constantResult(tensorOf(dims, kept));
}

void reshape(ImportNode& n) {
  Dims dims = n.listOrInput("shape", 1);
  const Dims have = dimsOf(n.tensor(0));
  int64_t known = 1, *open = nullptr;
  for (size_t a = 0; a < dims.size(); ++a) {
    if (dims[a] == 0 && a < have.size()) dims[a] = have[a];
    if (dims[a] == -1)
      open = &dims[a];
    else if (dims[a] < 0 || dims[a] > INT32_MAX || (known *= dims[a]) > INT32_MAX)
      badData("{}: a shape with {}", n.label(), dims[a]);
  }
  if (open && known > 0) *open = countOf(have) / known;
  if (countOf(dims) != countOf(have)) badData("{}: {} cannot be {}", n.label(), textOf(have), textOf(dims));
  n.constantResult(withDims(n.tensor(0), dims));
}

void unsqueeze(ImportNode& n) {
  Dims dims = dimsOf(n.tensor(0)), axes = n.listOrInput("axes", 1);
  for (int64_t& a : axes) a = n.axis(a, dims.size() + axes.size());
  std::sort(axes.begin(), axes.end());
  for (const int64_t a : axes) dims.insert(dims.begin() + std::min<int64_t>(a, static_cast<int64_t>(dims.size())), 1);
  n.constantResult(withDims(n.tensor(0), dims));
}

void squeeze(ImportNode& n) {
  const Dims have = dimsOf(n.tensor(0));
  Dims axes = n.listOrInput("axes", 1), dims;
  for (int64_t& a : axes) a = n.axis(a, have.size());
  for (size_t a = 0; a < have.size(); ++a) {
    const bool named = std::find(axes.begin(), axes.end(), static_cast<int64_t>(a)) != axes.end();
    if (have[a] != 1 || (!axes.empty() && !named)) dims.push_back(have[a]);
  }
  n.constantResult(withDims(n.tensor(0), dims));
}

void transpose(ImportNode& n) {
  const Dims have = dimsOf(n.tensor(0));
  Dims order = n.list("perm"), dims(have.size());
  if (order.empty())
    for (size_t a = have.size(); a-- > 0;) order.push_back(static_cast<int64_t>(a));
  if (order.size() != have.size()) badData("{}: perm has {} axes of {}", n.label(), order.size(), have.size());
  std::vector<size_t> step(have.size());  // in the old values, by new axis
  for (size_t a = 0; a < order.size(); ++a) {
    const auto from = static_cast<size_t>(n.axis(order[a], have.size()));
    dims[a] = have[from], step[a] = 1;
    for (size_t b = from + 1; b < have.size(); ++b) step[a] *= static_cast<size_t>(have[b]);
  }
  const auto turned = [&](const auto& old) {
    if (countOf(dims) != static_cast<int64_t>(old.size())) badData("{}: perm names an axis twice", n.label());
    auto values = old;
    std::vector<int64_t> at(dims.size());
    for (auto& v : values) {
      size_t from = 0;
      for (size_t a = 0; a < at.size(); ++a) from += static_cast<size_t>(at[a]) * step[a];
      v = old.at(from);
      for (size_t a = at.size(); a-- > 0 && ++at[a] == dims[a];) at[a] = 0;
    }
    return tensorOf(dims, values);
  };
  n.constantResult(isInteger(n.tensor(0)) ? turned(n.ints(0)) : turned(n.floats(0)));
}

void constantOfShape(ImportNode& n) {
  const auto dims = n.ints(0);
  const auto count = static_cast<size_t>(countOf(dims));
  if (count > (1 << 24)) n.refuse("it makes a constant of {}", textOf(dims));
  const auto* value = n.attribute("value");
  if (value && countOf(dimsOf(value->t())) != 1) badData("{}: its value is no single number", n.label());
  if (value && isInteger(value->t()))
    return n.constantResult(tensorOf(dims, std::vector<int64_t>(count, intsOf(value->t())[0])));
  n.constantResult(tensorOf(dims, std::vector<float>(count, value ? floatsOf(value->t())[0] : 0.f)));
}

// Numbers of lists, or one for all.
template <class V>
std::vector<V> each(ImportNode& n, std::vector<V> a, std::vector<V> b) {
  const size_t count = std::max(a.size(), b.size());
  if (a.size() == 1) a.resize(count, a[0]);
  if (b.size() == 1) b.resize(count, b[0]);
  if (a.size() != b.size()) n.refuse("its constants have different shapes");
  for (size_t i = 0; i < count; ++i) {
    if (n.op() == "Div" && b[i] == V{}) badData("{} divides by zero", n.label());
    if constexpr (std::is_integral_v<V>)  // as the machine wraps them
      if (n.op() != "Div") {
        const auto x = static_cast<uint64_t>(a[i]), y = static_cast<uint64_t>(b[i]);
        a[i] = static_cast<V>(n.op() == "Add" ? x + y : n.op() == "Sub" ? x - y : x * y);
        continue;
      }
    a[i] = n.op() == "Add" ? a[i] + b[i] : n.op() == "Sub" ? a[i] - b[i] : n.op() == "Mul" ? a[i] * b[i] : a[i] / b[i];
  }
  return a;
}
void arithmetic(ImportNode& n) {
  const Dims a = dimsOf(n.tensor(0)), b = dimsOf(n.tensor(1));
  const Dims& dims = countOf(a) > countOf(b) || (countOf(a) == countOf(b) && a.size() > b.size()) ? a : b;
  if (isInteger(n.tensor(0)))
    n.constantResult(tensorOf(dims, each(n, n.ints(0), n.ints(1))));
  else
    n.constantResult(tensorOf(dims, each(n, n.floats(0), n.floats(1))));
}

}  // namespace

void addImportConstants(ImportConversions& all) {
  all.insert({{"Add", arithmetic},
              {"Cast", cast},
              {"Concat", concat},
              {"Constant", constant},
              {"ConstantOfShape", constantOfShape},
              {"Div", arithmetic},
              {"Gather", gather},
              {"Identity", identity},
              {"Mul", arithmetic},
              {"Reshape", reshape},
              {"Shape", shape},
              {"Slice", slice},
              {"Squeeze", squeeze},
              {"Sub", arithmetic},
              {"Transpose", transpose},
              {"Unsqueeze", unsqueeze}});
}

}  // namespace crema::cli
