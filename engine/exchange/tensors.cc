#include "exchange/tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace crema::exchange {
namespace {

using T = ::onnx::TensorProto;

float half(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                     : exponent     ? std::ldexp(static_cast<float>(1024 + fraction), exponent - 25)
                                    : std::ldexp(static_cast<float>(fraction), -24);
  return bits & 0x8000 ? -size : size;
}

// Rounds to nearest, ties to even.
uint16_t halfOf(double v) {
  const auto sign = static_cast<uint16_t>(std::signbit(v) ? 0x8000 : 0);
  if (std::isnan(v)) return 0x7e00;
  if (std::fabs(v) >= 65520) return sign | 0x7c00;
  const int exponent = std::max(v == 0 ? -14 : std::ilogb(v), -14);
  return static_cast<uint16_t>(sign + ((exponent + 14) << 10) +
                               static_cast<int>(std::nearbyint(std::ldexp(std::fabs(v), 10 - exponent))));
}

template <class V>
std::string bytesOfAll(const std::vector<V>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(V)};
}

template <class Stored, class List>
std::string listed(const T& t, const List& list) {
  const int64_t count = countOf(dimsOf(t));
  if (list.size() != count)
    badData("{} is damaged: {} has {} values, and {} are there", titleOf(t), textOf(dimsOf(t)), count, list.size());
  std::vector<Stored> all;
  all.reserve(static_cast<size_t>(count));
  for (const auto v : list) all.push_back(static_cast<Stored>(v));
  return bytesOfAll(all);
}

// The tensor's raw_data, or `packed`, filled from the field of its type.
const std::string& bytesOf(const T& t, std::string& packed) {
  if (t.data_location() == 1 || t.external_data_size())
    invalid(
        "{} keeps its values in a file of its own, and only initializers' are read: save the model in one file "
        "(Python: onnx.save(onnx.load(MODEL), FILE))",
        titleOf(t));
  const size_t width = widthOf(t);
  if (t.has_raw_data()) {
    const int64_t count = countOf(dimsOf(t));
    if (t.raw_data().size() != static_cast<size_t>(count) * width)
      badData("{} is damaged: {} has {} values, and {} bytes are there", titleOf(t), textOf(dimsOf(t)), count,
              t.raw_data().size());
    return t.raw_data();
  }
  if (t.data_type() == T::FLOAT) return packed = listed<float>(t, t.float_data());
  if (t.data_type() == T::DOUBLE) return packed = listed<double>(t, t.double_data());
  if (t.data_type() == T::INT64) return packed = listed<int64_t>(t, t.int64_data());
  if (width == 4) return packed = listed<int32_t>(t, t.int32_data());
  return packed = width == 2 ? listed<uint16_t>(t, t.int32_data()) : listed<uint8_t>(t, t.int32_data());
}

template <class Stored, class To, class Convert>
std::vector<To> unpacked(const std::string& bytes, Convert convert) {
  std::vector<To> all(bytes.size() / sizeof(Stored));
  for (size_t i = 0; i < all.size(); ++i) {
    Stored v;
    std::memcpy(&v, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    all[i] = convert(v);
  }
  return all;
}

template <class To>
std::vector<To> valuesOf(const T& t) {
  std::string packed;
  const std::string& bytes = bytesOf(t, packed);
  const auto plain = [](auto v) { return static_cast<To>(v); };
  switch (t.data_type()) {
    case T::FLOAT:
      return unpacked<float, To>(bytes, plain);
    case T::DOUBLE:
      return unpacked<double, To>(bytes, plain);
    case T::FLOAT16:
      return unpacked<uint16_t, To>(bytes, [](uint16_t v) { return static_cast<To>(half(v)); });
    case T::INT64:
      return unpacked<int64_t, To>(bytes, plain);
    case T::INT32:
      return unpacked<int32_t, To>(bytes, plain);
    case T::INT8:
      return unpacked<int8_t, To>(bytes, plain);
    default:  // UINT8 and BOOL; widthOf() refuses other types
      return unpacked<uint8_t, To>(bytes, plain);
  }
}

template <class To, class From>
std::string narrowed(const std::vector<From>& values) {
  std::vector<To> all;
  all.reserve(values.size());
  for (const From v : values) {
    if constexpr (std::is_integral_v<From>)
      if (v < std::numeric_limits<To>::min() || v > std::numeric_limits<To>::max())
        badData("{} is no number of {} bits", v, 8 * sizeof(To));
    all.push_back(static_cast<To>(v));
  }
  return bytesOfAll(all);
}

}  // namespace

std::string titleOf(const T& t) { return t.name().empty() ? "a constant" : "tensor '" + t.name() + "'"; }

Dims dimsOf(const T& t) { return {t.dims().begin(), t.dims().end()}; }

std::string textOf(const Dims& dims) {
  std::string text;
  for (const int64_t d : dims) text += (text.empty() ? "" : "x") + std::to_string(d);
  return text.empty() ? "scalar" : text;
}

int64_t countOf(const Dims& dims) {
  int64_t count = 1;  // product of all dims but zeros, as strides are computed from it
  for (const int64_t d : dims) {
    if (d < 0 || (d > 0 && count > INT32_MAX / d)) badData("a tensor of {} cannot be", textOf(dims));
    count *= std::max<int64_t>(d, 1);
  }
  return std::find(dims.begin(), dims.end(), 0) == dims.end() ? count : 0;
}

std::string typeName(int type) {
  return T::DataType_IsValid(type) ? T::DataType_Name(static_cast<T::DataType>(type)) : fmt::format("type {}", type);
}

bool isInteger(int type) {
  return type == T::INT64 || type == T::INT32 || type == T::INT8 || type == T::UINT8 || type == T::BOOL;
}

size_t widthOf(const T& t) {
  switch (t.data_type()) {
    case T::DOUBLE:
    case T::INT64:
      return 8;
    case T::FLOAT:
    case T::INT32:
      return 4;
    case T::FLOAT16:
      return 2;
    case T::INT8:
    case T::UINT8:
    case T::BOOL:
      return 1;
    default:
      invalid("{} has values of {}, which are not read; export the model in float32", titleOf(t),
              typeName(t.data_type()));
  }
}

std::string bytesOf(const T& t) {
  std::string packed;
  return bytesOf(t, packed);
}

std::vector<float> floatsOf(const T& t) { return valuesOf<float>(t); }

std::vector<double> doublesOf(const T& t) { return valuesOf<double>(t); }

std::vector<int64_t> intsOf(const T& t) {
  if (!isInteger(t)) badData("{} holds no integers", titleOf(t));
  return valuesOf<int64_t>(t);
}

T tensorOf(const Dims& dims, std::string bytes, int type) {
  T t;
  for (const int64_t d : dims) t.add_dims(d);
  t.set_data_type(type);
  t.set_raw_data(std::move(bytes));
  return t;
}

T tensorOf(const Dims& dims, const std::vector<float>& values) { return tensorOf(dims, bytesOfAll(values), T::FLOAT); }

T tensorOf(const Dims& dims, const std::vector<double>& values, int type) {
  if (type == T::DOUBLE) return tensorOf(dims, bytesOfAll(values), type);
  if (type != T::FLOAT16) return tensorOf(dims, narrowed<float>(values), T::FLOAT);
  std::vector<uint16_t> all;
  for (const double v : values) all.push_back(halfOf(v));
  return tensorOf(dims, bytesOfAll(all), type);
}

T tensorOf(const Dims& dims, const std::vector<int64_t>& values, int type) {
  switch (type) {
    case T::INT32:
      return tensorOf(dims, narrowed<int32_t>(values), type);
    case T::INT8:
      return tensorOf(dims, narrowed<int8_t>(values), type);
    case T::UINT8:
      return tensorOf(dims, narrowed<uint8_t>(values), type);
    case T::BOOL: {
      std::vector<uint8_t> all;
      for (const int64_t v : values) all.push_back(v != 0);
      return tensorOf(dims, bytesOfAll(all), type);
    }
    default:
      return tensorOf(dims, bytesOfAll(values), T::INT64);
  }
}

}  // namespace crema::exchange
