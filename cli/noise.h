// Numbers for the inputs that a caller would fill, and what came out for them: `crema time` is given no pictures.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "net/net.h"

namespace crema::cli {

// The tops of a net's Input layers, filled with numbers of mean 0 and variance 1, uniform, the same in every run: number i of a
// blob is sqrt(3) (h / 2^31 - 1), where h, in 32 bits, is i 0x9e3779b1; h ^ h >> 15; h 0x85ebca77; h ^ h >> 13.
// Not of base/random.h: whoever compares another program with this one makes them in three lines (bench/suite/nets.py).
class NoisyInputs {
 public:
  explicit NoisyInputs(const net::Net& net);
  // first(): a pass, which may refuse noise: what is a label or a word must be one. Then all inputs but the first are zeros, which
  // are both, and where that one is refused, too, it is as well. Throws what first() throws on zeros.
  double fill(const std::function<double()>& first);
  // Fills anew what a layer in place has written over.
  void refill() const;

 private:
  void write(size_t noisy) const;

  const net::Net& net_;
  std::vector<Blob*> inputs_;
  size_t noisy_ = 0;      // how many of them are noise, the others zeros
  bool written_ = false;  // some layer is in place of one
};

struct Output {
  std::string name;
  std::vector<int> shape;
  double rootMeanSquare;
  std::vector<double> first;  // up to 16 numbers
};
std::vector<Output> outputsOf(const net::Net& net);

}  // namespace crema::cli
