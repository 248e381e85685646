#include "cli/roofline.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <new>
#include <string>

#include "base/deadline.h"
#include "base/error.h"
#include "base/log.h"
#include "kernels/kernels.h"
#include "layers/registry.h"

namespace crema::cli {
namespace {

double bytesOf(const layers::Blobs& blobs) {
  double values = 0;
  for (const Blob* b : blobs) values += static_cast<double>(b->count());
  return 4 * values;
}

double parameterBytes(const layers::Layer& layer) {
  double values = 0;
  for (const auto& p : layer.params()) values += static_cast<double>(p->count());
  return 4 * values;
}

bool computes(const net::Net& net, int layer) {
  const auto& type = net.layers()[static_cast<size_t>(layer)]->type();
  return !net.bottoms(layer).empty() && !layers::builtinLayers().sharesMemory(type);
}

double fastest(const std::function<void()>& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 6; ++i) {  // the first touches memory
    const double from = monotonicSeconds();
    work();
    if (i > 0) best = std::min(best, monotonicSeconds() - from);
  }
  return best;
}

}  // namespace

Work forwardWork(const net::Net& net, int i) {
  if (!computes(net, i)) return {};
  const layers::Layer& layer = *net.layers()[static_cast<size_t>(i)];
  return {2.0 * static_cast<double>(layer.multiplyAdds(net.bottoms(i), net.tops(i))),
          bytesOf(net.bottoms(i)) + parameterBytes(layer) + bytesOf(net.tops(i))};
}

// Gradients of tops, and bottoms, are read; gradients of parameters are added to, those of bottoms are written.
Work backwardWork(const net::Net& net, int i) {
  if (!computes(net, i)) return {};
  const layers::Layer& layer = *net.layers()[static_cast<size_t>(i)];
  bool learns = false;
  for (size_t p = 0; p < layer.params().size(); ++p)
    learns |= layer.paramPropagates(static_cast<int>(p)) && !layer.keptPerPass(static_cast<int>(p));
  layers::Blobs down;
  for (size_t b = 0; b < net.bottoms(i).size(); ++b)
    if (net.propagateDown(i)[b]) down.push_back(net.bottoms(i)[b]);
  if (!learns && down.empty()) return {};
  Work work{0, bytesOf(net.tops(i)) + bytesOf(net.bottoms(i))};
  const double adds = static_cast<double>(layer.multiplyAdds(net.bottoms(i), net.tops(i)));
  if (learns) work += {2 * adds, 2 * parameterBytes(layer)};
  if (!down.empty()) work += {2 * adds, parameterBytes(layer) + bytesOf(down)};
  return work;
}

Peaks measuredPeaks(kernels::Context& kernels) try {
  Peaks peaks;
  constexpr int64_t kAdds = int64_t{1} << 31, kValues = int64_t{1} << 24;
  const auto adds = kAdds * kernels.pool().size() / 4;
  peaks.flops = 2 * static_cast<double>(adds) / fastest([&] { kernels::fullSpeed<float>(kernels, adds); });
  const std::vector<float> a(kValues, 1.f), b(kValues, 2.f);
  std::vector<float> sum(kValues);
  peaks.bytes =
      12.0 * kValues / fastest([&] { kernels::add<float>(kernels, kValues, a.data(), b.data(), sum.data()); });
  return peaks;
} catch (const std::bad_alloc&) {
  LOG_WARNING("this machine's peaks are not measured: that takes 192 MiB more memory; {}", memoryLimit());
  return {NAN, NAN};
}

int64_t mostMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return 1024 * std::stoll(line.substr(6));
  return 0;
}

double leastSeconds(const Work& work, const Peaks& peaks) {
  if (std::isnan(peaks.flops)) return NAN;
  return std::max(work.flops / peaks.flops, work.bytes / peaks.bytes);
}

}  // namespace crema::cli
