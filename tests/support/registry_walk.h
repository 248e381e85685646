// Checks of a registry: each type needs a summary, a head comment with a formula, a case with an expected result, a
// case whose gradients are checked by differences, and goldens of Caffe's. Exceptions have reasons here.
#pragma once
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/conformance.h"

namespace crema::conformance {

// Layers whose cases stand elsewhere, and where: a file that names the type.
inline const std::map<std::string, std::string>& casesElsewhere() {
  static const std::map<std::string, std::string> all = {
      {"Data", "tests/goldens/layers/cases.txt"},           // needs a database
      {"MemoryData", "tests/goldens/layers/cases.txt"},     // likewise
      {"HDF5Data", "engine/layers/hdf5_data_test.cc"},      // needs files
      {"HDF5Output", "engine/layers/hdf5_output_test.cc"},  // makes one
      {"CoSData", "engine/data/host_sources_test.cc"},      // rows of a host program
      {"Python", "tests/python/test_pycaffe_layers.py"}};   // computes in a host program
  return all;
}
// Layers without bottoms, or with constant pieces, which have no gradient to check.
inline const std::map<std::string, std::string>& withoutGradient() {
  static const std::map<std::string, std::string> all = {{"Accuracy", "a count"},    {"ArgMax", "places, no values"},
                                                         {"Threshold", "a step"},    {"DummyData", "no bottom"},
                                                         {"ImageData", "no bottom"}, {"Input", "no bottom"},
                                                         {"WindowData", "no bottom"}};
  return all;
}
// Layers that deliver or move values unchanged, whose head comments describe them without a formula.
inline const std::set<std::string>& withoutFormula() {
  static const std::set<std::string> all = {"Data",     "MemoryData", "CoSData",    "HDF5Data", "ImageData",
                                            "Input",    "DummyData",  "WindowData", "Flatten",  "Reshape",
                                            "Accuracy", "ArgMax",     "Python"};
  return all;
}

inline std::string textOf(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The head comment: the leading lines that begin with //.
inline std::string headOf(const std::string& source) {
  size_t end = 0;
  while (source.compare(end, 2, "//") == 0) end = std::min(source.size(), source.find('\n', end)) + 1;
  return source.substr(0, std::min(end, source.size()));
}

// Text of the source file that puts `type` into a registry; empty: none does.
inline std::string sourceOf(const std::string& type, const std::filesystem::path& root) {
  for (const auto& entry : std::filesystem::directory_iterator(root / "engine/layers")) {
    const std::string name = entry.path().filename().string(), text = textOf(entry.path());
    const size_t adds = text.find("\nvoid add");
    if (name.ends_with(".cc") && !name.ends_with("_test.cc") && adds != std::string::npos &&
        text.find('"' + type + '"', adds) != std::string::npos)
      return text;
  }
  return "";
}

// One gradient at least that a backward pass must compute.
inline bool hasGradient(const Case& c, const layers::LayerRegistry& registry) {
  Bench b(c, DType::kFloat64, caffe::TRAIN, 1, false, registry);
  const auto downs = b.downs();
  for (size_t i = 0; i < downs.size(); ++i)
    if (downs[i] && b.bottoms()[i]->count()) return true;
  for (size_t p = 0; p < b.layer().params().size(); ++p)
    if (!b.layer().keptPerPass(static_cast<int>(p))) return true;
  return false;
}

inline std::vector<std::string> complaintsAboutCases(const std::string& type, const layers::LayerRegistry& registry,
                                                     const Suite& suite, const std::filesystem::path& root) {
  if (const auto there = casesElsewhere().find(type); there != casesElsewhere().end())
    return textOf(root / there->second).find(type) != std::string::npos
               ? std::vector<std::string>{}
               : std::vector<std::string>{type + " is not named in " + there->second};
  bool any = false, outcome = false, gradient = false;
  for (const Case& c : suite.cases) {
    if (model::parseText<caffe::LayerParameter>(c.description, "case").type() != type) continue;
    any = true;
    outcome = outcome || c.naive || c.formula;
    gradient = gradient || (c.smooth && hasGradient(c, registry));
  }
  std::vector<std::string> all;
  if (!any) all.push_back(type + " has no case");
  if (!outcome) all.push_back(type + " has no case with a naive function or a formula");
  if (gradient == (withoutGradient().count(type) > 0))
    all.push_back(type + (gradient ? " has a gradient, and is listed as having none"
                                   : " has no case whose gradients differences can check"));
  return all;
}

// The mistakes found, as messages. root: the source tree; checks of sources are left out where it does not exist.
inline std::vector<std::string> complaints(const layers::LayerRegistry& registry, const Suite& suite,
                                           const std::filesystem::path& root) {
  std::vector<std::string> all;
  const bool tree = std::filesystem::is_directory(root / "engine/layers");
  if (!tree) std::printf("skipped: the layers' head comments, as %s is no source tree\n", root.c_str());
  for (const auto& [type, entry] : registry.entries()) {
    if (entry.summary.empty()) all.push_back(type + " has no summary");
    if (tree || !casesElsewhere().count(type))
      for (auto& c : complaintsAboutCases(type, registry, suite, root)) all.push_back(std::move(c));
    if (!tree) continue;
    const std::string head = headOf(sourceOf(type, root));
    if (head.find(type) == std::string::npos) all.push_back(type + " has no head comment that names it");
    if (!withoutFormula().count(type) && head.find("= ") == std::string::npos)
      all.push_back(type + " has no formula in its head comment");
  }
  return all;
}

}  // namespace crema::conformance
