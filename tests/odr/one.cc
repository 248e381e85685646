// With two.cc two types of one name in one program: what the link as one (preset odr) must refuse. scripts/check_cpp
// tries it after the real link, since a check that cannot fail checks nothing.
#include <vector>

namespace crema {
struct Planted {
  int count;
  std::vector<int> values;
};
int countOf(const Planted& p) { return p.count; }
}  // namespace crema
