#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace crema::cli {

void printTable(const std::vector<Row>& rows, size_t names) {
  std::vector<size_t> width(rows[0].size(), 0);
  for (const Row& r : rows)
    for (size_t c = 0; c < r.size(); ++c) width[c] = std::max(width[c], r[c].size());
  for (const Row& r : rows) {
    std::string line;
    for (size_t c = 0; c < r.size(); ++c)
      line += c < names ? fmt::format("{:<{}}  ", r[c], width[c]) : fmt::format("{:>{}}  ", r[c], width[c]);
    std::printf("%s\n", line.substr(0, line.find_last_not_of(' ') + 1).c_str());
  }
}

}  // namespace crema::cli
