// Constant folding: nodes whose inputs are known, such as shapes (PyTorch's `x.view(x.size(0), -1)`) and transposed
// weights.
#include <algorithm>

#include "exchange/import_dims.h"
#include "exchange/import_values.h"

namespace crema::exchange {
namespace {

using Tensor = ::onnx::TensorProto;

Tensor withDims(const Tensor& t, const Dims& dims) { return tensorOf(dims, bytesOf(t), t.data_type()); }

void foldConstant(ImportNode& n) {
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

void foldShape(ImportNode& n) {
  const Dims dims = n.constant(0) ? dimsOf(n.tensor(0)) : n.in();
  const auto count = static_cast<int64_t>(dims.size());
  const auto at = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + count : v, 0, count); };
  const int64_t from = at(n.i("start", 0)), to = std::max(from, at(n.i("end", count)));
  const Dims part(dims.begin() + from, dims.begin() + to);
  n.constantResult(tensorOf({to - from}, part));
}

void foldIdentity(ImportNode& n) { n.constantResult(n.tensor(0)); }

// Picks elements along an axis by the indices in the second input.
void foldGather(ImportNode& n) {
  const Tensor& t = n.tensor(0);
  const Dims in = dimsOf(t), places = dimsOf(n.tensor(1));
  const auto axis = static_cast<ptrdiff_t>(n.axis(n.i("axis", 0), in.size()));
  Dims dims(in.begin(), in.begin() + axis);
  const int64_t outer = countOf(dims);
  dims.insert(dims.end(), places.begin(), places.end());
  dims.insert(dims.end(), in.begin() + axis + 1, in.end());
  checkSize(n, dims);
  const size_t row = static_cast<size_t>(countOf(Dims(in.begin() + axis + 1, in.end()))) * widthOf(t);
  const auto length = static_cast<size_t>(in[static_cast<size_t>(axis)]);
  const std::string old = bytesOf(t);
  const auto all = n.ints(1);
  std::string made;
  for (size_t o = 0; o < static_cast<size_t>(outer); ++o)
    for (const int64_t i : all) made.append(old, (o * length + static_cast<size_t>(n.axis(i, length))) * row, row);
  n.constantResult(tensorOf(dims, std::move(made), t.data_type()));
}

void foldConcat(ImportNode& n) {
  std::vector<Dims> parts;
  std::vector<std::string> values;
  for (int i = 0; i < n.inputs(); ++i) {
    parts.push_back(dimsOf(n.tensor(i))), values.push_back(bytesOf(n.tensor(i)));
    if (n.tensor(i).data_type() != n.tensor(0).data_type()) badData("{}: it joins values of two types", n.label());
  }
  if (parts.empty()) badData("{}: it has no input", n.label());
  const auto axis = static_cast<size_t>(n.axis(n.i("axis", 0), parts[0].size()));
  const Dims dims = joinedDims(n, parts, axis);
  checkSize(n, dims);
  const auto outer = static_cast<size_t>(countOf(Dims(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(axis))));
  std::string made;
  for (size_t o = 0; o < outer; ++o)
    for (const std::string& part : values) made.append(part, o * (part.size() / outer), part.size() / outer);
  n.constantResult(tensorOf(dims, std::move(made), n.tensor(0).data_type()));
}

void foldSlice(ImportNode& n) {
  const Tensor& t = n.tensor(0);
  Dims dims, steps = stepsOf(dimsOf(t));
  int64_t first = 0;
  for (const ImportRange& r : slicedRanges(n, dimsOf(t))) {
    first += r.from * steps[dims.size()], steps[dims.size()] *= r.step;
    dims.push_back(r.count);
  }
  n.constantResult(picked(n, t, dims, steps, first));
}

void foldReshape(ImportNode& n) { n.constantResult(withDims(n.tensor(0), reshapedDims(n, dimsOf(n.tensor(0))))); }
void foldSqueeze(ImportNode& n) { n.constantResult(withDims(n.tensor(0), squeezedDims(n, dimsOf(n.tensor(0))))); }
void foldUnsqueeze(ImportNode& n) { n.constantResult(withDims(n.tensor(0), unsqueezedDims(n, dimsOf(n.tensor(0))))); }

void foldTranspose(ImportNode& n) {
  const Tensor& t = n.tensor(0);
  const Dims have = dimsOf(t), had = stepsOf(have);
  Dims dims, steps;
  for (const size_t from : transposedAxes(n, have.size())) dims.push_back(have[from]), steps.push_back(had[from]);
  n.constantResult(picked(n, t, dims, steps, 0));
}

void foldExpand(ImportNode& n) {
  const Dims dims = broadcastDims(n, dimsOf(n.tensor(0)), n.ints(1));
  n.constantResult(spread(n, n.tensor(0), dims));
}

void foldConstantOfShape(ImportNode& n) {
  const Dims dims = n.ints(0);
  checkSize(n, dims);
  const auto* value = n.attribute("value");
  if (!value) return n.constantResult(tensorOf(dims, std::vector<float>(static_cast<size_t>(countOf(dims)))));
  if (countOf(dimsOf(value->t())) != 1) badData("{}: its value is no single number", n.label());
  n.constantResult(picked(n, value->t(), dims, Dims(dims.size(), 0), 0));
}

}  // namespace

void addImportConstants(ImportConversions& all) {
  all.insert({{"Concat", foldConcat},
              {"Constant", foldConstant},
              {"ConstantOfShape", foldConstantOfShape},
              {"Expand", foldExpand},
              {"Gather", foldGather},
              {"Identity", foldIdentity},
              {"Reshape", foldReshape},
              {"Shape", foldShape},
              {"Slice", foldSlice},
              {"Squeeze", foldSqueeze},
              {"Transpose", foldTranspose},
              {"Unsqueeze", foldUnsqueeze}});
}

}  // namespace crema::exchange
