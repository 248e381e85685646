// crema layers: the layer types that a net can name, each with its summary from the registry.
#include "layers/registry.h"

#include <algorithm>
#include <cstdio>

#include "cli/command.h"

namespace crema::cli {
namespace {

int listLayers() {
  const auto& entries = layers::builtinLayers().entries();
  size_t width = 0;
  for (const auto& [type, entry] : entries) width = std::max(width, type.size());
  for (const auto& [type, entry] : entries)
    std::printf("%-*s  %s\n", static_cast<int>(width), type.c_str(), entry.summary.c_str());
  return 0;
}

}  // namespace

void addLayers(CLI::App& program, Run& chosen) {
  addCommand(
      program, "layers", "the layer types that a net can name", [](CLI::App&) -> Run { return listLayers; }, chosen);
}

}  // namespace crema::cli
