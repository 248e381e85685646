#include "base/nearest.h"

#include <algorithm>

namespace crema {
namespace {

// The edit distance of two words: insertions, deletions, substitutions and swaps of adjacent letters.
size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i)
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

// The one of `known` with the least edit distance to `word`; "" when every one is further than a third of its letters.
std::string nearest(const std::string& word, const std::vector<std::string>& known) {
  size_t least = std::max<size_t>(1, (word.size() + 1) / 3) + 1;
  std::string best;
  for (const std::string& k : known)
    if (const size_t d = distance(word, k); d < least) least = d, best = k;
  return best;
}

}  // namespace

std::string didYouMean(const std::string& word, const std::vector<std::string>& known, const std::string& before) {
  const std::string meant = nearest(word, known);
  return meant.empty() ? "" : "; did you mean " + before + meant + "?";
}

}  // namespace crema
