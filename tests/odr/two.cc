// See one.cc.
#include <vector>

namespace crema {
struct Planted {
  std::vector<double> values;
  int count;
};
int countOf(const Planted& p);
}  // namespace crema

int main() { return crema::countOf(crema::Planted{{}, 0}); }
