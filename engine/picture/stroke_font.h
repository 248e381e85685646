// Letters of straight strokes, for pictures without fonts: ASCII 33 to 126 on a grid 4 wide and 6 high, with 2 below
// the base line. Others are an empty box.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace crema::picture {

constexpr double kStrokeHeight = 6, kStrokeAdvance = 5.4;
using Stroke = std::vector<std::pair<int, int>>;  // points (x, y), y downwards, 6 the base line
std::vector<Stroke> strokesOf(char c);

}  // namespace crema::picture
