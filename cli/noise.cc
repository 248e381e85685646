#include "cli/noise.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>

#include "base/error.h"
#include "base/log.h"

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

NoisyInputs::NoisyInputs(const net::Net& net) : net_(net) {
  std::set<std::string> names;
  for (int i = 0; i < static_cast<int>(net.layers().size()); ++i) {
    const auto& tops = net.topNames(i);
    if (net.layers()[static_cast<size_t>(i)]->type() == "Input") {
      inputs_.insert(inputs_.end(), net.tops(i).begin(), net.tops(i).end());
      names.insert(tops.begin(), tops.end());
    } else {
      for (const std::string& top : tops) written_ = written_ || names.count(top) > 0;
    }
  }
}

void NoisyInputs::write(size_t noisy) const {
  for (size_t i = 0; i < inputs_.size(); ++i)
    withType(net_.dtype(), [&]<class T>() {
      T* to = inputs_[i]->mutableData<T>();
      for (int64_t k = 0; k < inputs_[i]->count(); ++k)
        to[k] = i < noisy ? static_cast<T>(noise(static_cast<uint32_t>(k))) : T{0};
    });
}

double NoisyInputs::fill(const std::function<double()>& first) {
  for (noisy_ = inputs_.size(); noisy_ > 0; noisy_ = noisy_ > 1 ? 1 : 0) {
    write(noisy_);
    try {
      return first();
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kData && e.kind() != ErrorKind::kInvalid) throw;
      LOG_INFO("A layer refuses noise, so {} zeros: {}", noisy_ > 1 ? "all inputs but the first are" : "inputs are",
               e.what());
    }
  }
  write(0);
  return first();
}

void NoisyInputs::refill() const {
  if (written_) write(noisy_);
}

std::vector<Output> outputsOf(const net::Net& net) {
  std::vector<Output> all;
  for (const std::string& name : net.outputs()) {
    const Blob& blob = net.blob(name);
    Output out{name, blob.shape().dims(), 0, {}};
    withType(net.dtype(), [&]<class T>() {
      out.first.assign(blob.data<T>(), blob.data<T>() + std::min<int64_t>(16, blob.count()));
      for (int64_t k = 0; k < blob.count(); ++k) out.rootMeanSquare += std::pow(double{blob.data<T>()[k]}, 2);
    });
    out.rootMeanSquare = std::sqrt(out.rootMeanSquare / static_cast<double>(std::max<int64_t>(1, blob.count())));
    all.push_back(std::move(out));
  }
  return all;
}

}  // namespace crema::cli
