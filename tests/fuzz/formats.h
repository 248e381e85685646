// The formats of files from elsewhere and of what other processes say, each with valid examples and a function that reads
// all of it.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace crema::fuzz {

struct Format {
  std::string name;
  std::vector<std::string> seeds, words;
  std::function<void(const std::string& bytes)> read;  // may throw Error, and nothing else
  int cost = 1;           // relative to ordinary inputs; the number of inputs is divided by it
  std::string ends = {};  // of an error with which a valid example may end: a stream by its end, a proof by being none
};

// `folder`: an empty one for files that have to lie somewhere.
std::vector<Format> formats(const std::string& folder);

}  // namespace crema::fuzz
