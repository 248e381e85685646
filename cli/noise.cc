#include "cli/noise.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace crema::cli {
namespace {

double noise(uint32_t i) {
  uint32_t h = i * 0x9e3779b1U;
  h ^= h >> 15;
  h *= 0x85ebca77U;
  h ^= h >> 13;
  return std::sqrt(3.0) * (h / 2147483648.0 - 1);
}

}  // namespace

void fillInputsWithNoise(const net::Net& net) {
  for (size_t i = 0; i < net.layers().size(); ++i) {
    if (net.layers()[i]->type() != std::string("Input")) continue;
    for (const auto& top : net.tops(static_cast<int>(i))) {
      if (top->shape().axes() != 4) continue;
      withType(net.dtype(), [&]<class T>() {
        T* to = top->mutableData<T>();
        for (int64_t k = 0; k < top->count(); ++k) to[k] = static_cast<T>(noise(static_cast<uint32_t>(k)));
      });
    }
  }
}

std::vector<Output> outputsOf(const net::Net& net) {
  std::vector<Output> all;
  for (const std::string& name : net.outputs()) {
    const Blob& blob = net.blob(name);
    Output out{name, blob.shape().dims(), 0};
    withType(net.dtype(), [&]<class T>() {
      for (int64_t k = 0; k < blob.count(); ++k) out.rootMeanSquare += std::pow(double{blob.data<T>()[k]}, 2);
    });
    out.rootMeanSquare = std::sqrt(out.rootMeanSquare / static_cast<double>(std::max<int64_t>(1, blob.count())));
    all.push_back(std::move(out));
  }
  return all;
}

}  // namespace crema::cli
