// Lines, boxes and words as an SVG or a PNG. Units are pixels; y grows downwards.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace crema::picture {

struct Colour {
  unsigned char r = 0, g = 0, b = 0;
};
struct Point {
  double x = 0, y = 0;
};
enum class Anchor { kStart, kMiddle, kEnd };

class Canvas {
 public:
  virtual ~Canvas() = default;
  virtual void line(const std::vector<Point>& points, Colour colour, double width) = 0;
  virtual void box(Point corner, Point size, Colour fill, Colour edge) = 0;
  // `at`: on the base line. The letters are `size` high; textWidth() estimates their width.
  virtual void text(Point at, const std::string& words, Anchor anchor, double size, Colour colour) = 0;
  virtual std::string finish() = 0;  // the file's bytes
  static double textWidth(const std::string& words, double size) {
    return static_cast<double>(words.size()) * size * 0.66;
  }
};

// By the ending of `path`: .svg or .png; invalid() for others, and for more pixels than a PNG should have.
[[nodiscard]] std::unique_ptr<Canvas> canvasFor(const std::string& path, double width, double height);

}  // namespace crema::picture
