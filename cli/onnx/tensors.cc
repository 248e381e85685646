#include "cli/onnx/tensors.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace crema::cli {
namespace {

using T = ::onnx::TensorProto;

float half(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                     : exponent     ? std::ldexp(static_cast<float>(1024 + fraction), exponent - 25)
                                    : std::ldexp(static_cast<float>(fraction), -24);
  return bits & 0x8000 ? -size : size;
}

std::string named(const T& t) { return t.name().empty() ? "a constant" : "tensor '" + t.name() + "'"; }

template <class Stored, class To, class Convert>
std::vector<To> raw(const T& t, Convert convert) {
  const auto count = static_cast<size_t>(countOf(dimsOf(t)));
  if (t.raw_data().size() != count * sizeof(Stored))
    badData("{} is damaged: {} has {} values, and {} bytes are there", named(t), textOf(dimsOf(t)), count,
            t.raw_data().size());
  std::vector<To> all(count);
  for (size_t i = 0; i < count; ++i) {
    Stored v;
    std::memcpy(&v, t.raw_data().data() + i * sizeof(Stored), sizeof(Stored));
    all[i] = convert(v);
  }
  return all;
}
template <class To, class List, class Convert>
std::vector<To> listed(const T& t, const List& list, Convert convert) {
  const int64_t count = countOf(dimsOf(t));
  if (list.size() != count)
    badData("{} is damaged: {} has {} values, and {} are there", named(t), textOf(dimsOf(t)), count, list.size());
  std::vector<To> all;
  all.reserve(static_cast<size_t>(count));
  for (const auto v : list) all.push_back(convert(v));
  return all;
}

// Of any type: from raw bytes, or from the list of its type.
template <class To>
std::vector<To> valuesOf(const T& t) {
  if (t.data_location() == 1 || t.external_data_size())
    invalid(
        "{} keeps its values in a file of its own, and only initializers' are read: save the model in one file "
        "(Python: "
        "onnx.save(onnx.load(MODEL), FILE))",
        named(t));
  const auto plain = [](auto v) { return static_cast<To>(v); };
  const auto ofHalf = [](auto v) { return static_cast<To>(half(static_cast<uint16_t>(v))); };
  const bool bytes = t.has_raw_data();
  switch (t.data_type()) {
    case T::FLOAT:
      return bytes ? raw<float, To>(t, plain) : listed<To>(t, t.float_data(), plain);
    case T::DOUBLE:
      return bytes ? raw<double, To>(t, plain) : listed<To>(t, t.double_data(), plain);
    case T::FLOAT16:
      return bytes ? raw<uint16_t, To>(t, ofHalf) : listed<To>(t, t.int32_data(), ofHalf);
    case T::INT64:
      return bytes ? raw<int64_t, To>(t, plain) : listed<To>(t, t.int64_data(), plain);
    case T::INT32:
      return bytes ? raw<int32_t, To>(t, plain) : listed<To>(t, t.int32_data(), plain);
    case T::INT8:
      return bytes ? raw<int8_t, To>(t, plain) : listed<To>(t, t.int32_data(), plain);
    case T::UINT8:
    case T::BOOL:
      return bytes ? raw<uint8_t, To>(t, plain) : listed<To>(t, t.int32_data(), plain);
    default:
      invalid("{} has values of type {}, which is not read; export the model in float32", named(t), t.data_type());
  }
}

template <class V>
T filled(const Dims& dims, const std::vector<V>& values, T::DataType type) {
  T t;
  for (const int64_t d : dims) t.add_dims(d);
  t.set_data_type(type);
  t.set_raw_data(values.data(), values.size() * sizeof(V));
  return t;
}

}  // namespace

Dims dimsOf(const T& t) { return {t.dims().begin(), t.dims().end()}; }

std::string textOf(const Dims& dims) {
  std::string text;
  for (const int64_t d : dims) text += (text.empty() ? "" : "x") + std::to_string(d);
  return text.empty() ? "scalar" : text;
}

int64_t countOf(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t d : dims) {
    if (d < 0 || (d > 0 && count > INT32_MAX / d)) badData("a tensor of {} cannot be", textOf(dims));
    count *= d;
  }
  return count;
}

bool isInteger(const T& t) {
  return t.data_type() == T::INT64 || t.data_type() == T::INT32 || t.data_type() == T::INT8 ||
         t.data_type() == T::UINT8 || t.data_type() == T::BOOL;
}

void readExternal(::onnx::GraphProto* graph, const std::string& folder) {
  for (T& t : *graph->mutable_initializer()) {
    if (t.data_location() != 1) continue;
    std::string file;
    uint64_t offset = 0, length = UINT64_MAX;
    for (const auto& p : t.external_data()) {
      if (p.key() == "location") file = p.value();
      if (p.key() == "offset") offset = std::strtoull(p.value().c_str(), nullptr, 10);
      if (p.key() == "length") length = std::strtoull(p.value().c_str(), nullptr, 10);
    }
    if (file.empty() || file[0] == '/' || file.find("..") != std::string::npos)
      badData("{} has its values in '{}', which is no file beside the model", named(t), file);
    const std::string path = folder + "/" + file;
    std::ifstream in(path, std::ios::binary | std::ios::ate);
    if (!in) ioError("cannot open {}, which holds the values of {}; put it beside the model", path, named(t));
    const auto size = static_cast<uint64_t>(in.tellg());
    if (offset > size || (length != UINT64_MAX && length > size - offset))
      badData("{} is cut: {} needs {} bytes from {} on, and it has {}", path, named(t), length, offset, size);
    std::string bytes(length == UINT64_MAX ? size - offset : length, 0);
    in.seekg(static_cast<std::streamoff>(offset));
    if (!in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) ioError("cannot read {}", path);
    t.set_raw_data(std::move(bytes));
    t.clear_external_data(), t.clear_data_location();
  }
}

std::vector<float> floatsOf(const T& t) { return valuesOf<float>(t); }

std::vector<int64_t> intsOf(const T& t) {
  if (!isInteger(t)) badData("{} holds no integers", named(t));
  return valuesOf<int64_t>(t);
}

T tensorOf(const Dims& dims, const std::vector<int64_t>& values) { return filled(dims, values, T::INT64); }
T tensorOf(const Dims& dims, const std::vector<float>& values) { return filled(dims, values, T::FLOAT); }

}  // namespace crema::cli
