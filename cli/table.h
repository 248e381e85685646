// A table on stdout, each column as wide as its widest cell.
#pragma once
#include <string>
#include <vector>

namespace crema::cli {

using Row = std::vector<std::string>;

// The first row is the heading; `names` columns are aligned left, the others, numbers, right.
void printTable(const std::vector<Row>& rows, size_t names);

}  // namespace crema::cli
