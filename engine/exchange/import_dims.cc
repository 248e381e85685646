#include "exchange/import_dims.h"

#include <algorithm>

namespace crema::exchange {
namespace {

// Axes counted from 0, in ascending order.
Dims axesOf(const ImportNode& n, Dims axes, size_t of) {
  for (int64_t& a : axes) a = n.axis(a, of);
  std::sort(axes.begin(), axes.end());
  return axes;
}
Dims axesOnce(const ImportNode& n, const Dims& given, size_t of) {
  const Dims axes = axesOf(n, given, of);
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) badData("{}: its axes name one twice", n.label());
  return axes;
}

}  // namespace

// 0 keeps the old length, or means 0 with allowzero; one -1 is inferred.
Dims reshapedDims(const ImportNode& n, const Dims& in) {
  Dims dims = n.listOrInput("shape", 1);
  const Dims wanted = dims;
  int64_t known = 1, *open = nullptr;
  for (size_t a = 0; a < dims.size(); ++a) {
    if (dims[a] == 0 && !n.i("allowzero", 0)) {
      if (a >= in.size()) badData("{}: axis {} of {} stays as it is, and there is none", n.label(), a, textOf(in));
      dims[a] = in[a];
    }
    if (dims[a] == -1 && !open)
      open = &dims[a];
    else if (dims[a] < 0 || dims[a] > INT32_MAX || (known *= dims[a]) > INT32_MAX)
      badData("{}: a shape with {}", n.label(), dims[a]);
  }
  if (open) *open = known ? countOf(in) / known : 0;
  if (countOf(dims) != countOf(in)) badData("{}: {} cannot be {}", n.label(), textOf(in), textOf(wanted));
  return dims;
}

Dims squeezedDims(const ImportNode& n, const Dims& in) {
  const Dims axes = axesOf(n, n.listOrInput("axes", 1), in.size());
  Dims dims;
  for (size_t a = 0; a < in.size(); ++a) {
    const bool named = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(a));
    if (named && in[a] != 1) badData("{}: axis {} of {} is not 1", n.label(), a, textOf(in));
    if (axes.empty() ? in[a] != 1 : !named) dims.push_back(in[a]);
  }
  return dims;
}

Dims unsqueezedDims(const ImportNode& n, const Dims& in) {
  const Dims given = n.listOrInput("axes", 1);
  Dims dims = in;
  for (const int64_t a : axesOnce(n, given, in.size() + given.size())) dims.insert(dims.begin() + a, 1);
  return dims;
}

std::vector<size_t> transposedAxes(const ImportNode& n, size_t axes) {
  const Dims order = n.list("perm");
  std::vector<size_t> from;
  if (order.empty())
    for (size_t a = axes; a-- > 0;) from.push_back(a);
  else if (axesOnce(n, order, axes).size() != axes)
    badData("{}: perm has {} axes of {}", n.label(), order.size(), axes);
  for (const int64_t a : order) from.push_back(static_cast<size_t>(n.axis(a, axes)));
  return from;
}

Dims joinedDims(const ImportNode& n, const std::vector<Dims>& parts, size_t axis) {
  Dims all = parts.at(0);
  all.at(axis) = 0;
  for (const Dims& part : parts) {
    for (size_t a = 0; a < all.size(); ++a)
      if (part.size() != all.size() || (a != axis && part[a] != all[a]))
        badData("{}: {} and {} are joined on axis {}", n.label(), textOf(parts[0]), textOf(part), axis);
    all[axis] += part[axis];
  }
  return all;
}

std::vector<ImportRange> slicedRanges(const ImportNode& n, const Dims& in) {
  const auto from = n.listOrInput("starts", 1), to = n.listOrInput("ends", 2);
  Dims axes = n.listOrInput("axes", 3), steps = n.has(4) ? n.ints(4) : Dims(from.size(), 1);
  if (axes.empty())
    for (size_t a = 0; a < from.size(); ++a) axes.push_back(static_cast<int64_t>(a));
  if (from.size() != axes.size() || to.size() != axes.size() || steps.size() != axes.size())
    badData("{}: starts, ends, axes and steps differ in number", n.label());
  axesOnce(n, axes, in.size());
  std::vector<ImportRange> all;
  for (const int64_t length : in) all.push_back({0, 1, length});
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(n.axis(axes[k], in.size()));
    const int64_t length = in[axis], step = std::clamp<int64_t>(steps[k], -INT32_MAX, INT32_MAX);
    if (step == 0) badData("{}: a step of 0 on axis {}", n.label(), axis);
    const int64_t last = step < 0 ? length - 1 : length;
    const auto at = [&](int64_t v, int64_t low) {
      return std::clamp(v < 0 ? v + length : v, low, std::max(low, last));
    };
    const int64_t first = at(from[k], 0), end = at(to[k], step < 0 ? -1 : 0);
    const int64_t room = length == 0 ? 0 : step < 0 ? first - end : end - first;
    all[axis] = {first, step, room > 0 ? (room + std::abs(step) - 1) / std::abs(step) : 0};
  }
  return all;
}

Dims broadcastDims(const ImportNode& n, const Dims& a, const Dims& b) {
  Dims all = a.size() < b.size() ? b : a;
  const Dims& other = a.size() < b.size() ? a : b;
  for (size_t k = 1; k <= other.size(); ++k) {
    int64_t& length = all[all.size() - k];
    const int64_t given = other[other.size() - k];
    if (length == 1)
      length = given;
    else if (given != 1 && given != length)
      badData("{}: {} and {} do not fit", n.label(), textOf(a), textOf(b));
  }
  return all;
}

Dims alignedDims(const ImportNode& n, Dims small, const Dims& in) {
  if (broadcastDims(n, small, in) != in)
    n.refuse("{} would be spread to the axes of {}; write it out", textOf(in), textOf(small));
  small.insert(small.begin(), in.size() - small.size(), 1);
  return small;
}

}  // namespace crema::exchange
