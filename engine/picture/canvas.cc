#include "picture/canvas.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/encode.h"
#include "picture/stroke_font.h"

namespace crema::picture {
namespace {

std::string hex(Colour c) { return fmt::format("#{:02x}{:02x}{:02x}", c.r, c.g, c.b); }

std::string escaped(const std::string& words) {
  std::string out;
  for (const char c : words) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

class SvgCanvas : public Canvas {
 public:
  SvgCanvas(double width, double height)
      : text_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 "
                          "0 {0:.0f} {1:.0f}\">\n"
                          "<path d=\"M0 0H{0:.0f}V{1:.0f}H0Z\" fill=\"white\"/>\n",
                          width, height)) {}
  void line(const std::vector<Point>& points, Colour colour, double width) override {
    text_ += "<polyline points=\"";
    for (const Point& p : points) text_ += fmt::format("{:.1f},{:.1f} ", p.x, p.y);
    text_ += fmt::format("\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>\n", hex(colour), width);
  }
  void box(Point corner, Point size, Colour fill, Colour edge) override {
    text_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\" fill=\"{}\" stroke=\"{}\"/>\n",
        corner.x, corner.y, size.x, size.y, hex(fill), hex(edge));
  }
  void text(Point at, const std::string& words, Anchor anchor, double size, Colour colour) override {
    static const char* const kAnchors[] = {"start", "middle", "end"};
    text_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-family=\"sans-serif\" font-size=\"{:.1f}\" "
        "textLength=\"{:.1f}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{}\">{}</text>\n",
        at.x, at.y, kAnchors[static_cast<int>(anchor)], size * 1.3, textWidth(words, size), hex(colour),
        escaped(words));
  }
  std::string finish() override { return text_ + "</svg>\n"; }

 private:
  std::string text_;
};

class PngCanvas : public Canvas {
 public:
  PngCanvas(double width, double height) {
    image_.channels = 3, image_.width = static_cast<int>(width), image_.height = static_cast<int>(height);
    if (int64_t{image_.width} * image_.height > (int64_t{1} << 27))
      invalid("a picture of {} x {} is too large for a PNG; name an .svg", image_.width, image_.height);
    image_.bytes.assign(static_cast<size_t>(image_.width) * static_cast<size_t>(image_.height) * 3, 255);
  }
  void line(const std::vector<Point>& points, Colour colour, double width) override {
    for (size_t i = 1; i < points.size(); ++i) segment(points[i - 1], points[i], colour, width);
  }
  void box(Point corner, Point size, Colour fill, Colour edge) override {
    const auto at = [](double v) { return static_cast<int>(std::lround(v)); };
    for (int y = at(corner.y); y < at(corner.y + size.y); ++y)
      for (int x = at(corner.x); x < at(corner.x + size.x); ++x) mix(x, y, fill, 1);
    const Point a = corner, b{corner.x + size.x, corner.y}, c{corner.x + size.x, corner.y + size.y},
                d{corner.x, corner.y + size.y};
    line({a, b, c, d, a}, edge, 1);
  }
  void text(Point at, const std::string& words, Anchor anchor, double size, Colour colour) override {
    const double unit = size / kStrokeHeight, across = textWidth(" ", size) / kStrokeAdvance,
                 width = textWidth(words, size);
    double x = at.x - (anchor == Anchor::kMiddle ? width / 2 : anchor == Anchor::kEnd ? width : 0);
    for (const char c : words) {
      for (const auto& stroke : strokesOf(c)) {
        std::vector<Point> points;
        for (const auto& [px, py] : stroke) points.push_back({x + px * across, at.y + (py - kStrokeHeight) * unit});
        line(points, colour, std::max(1.0, size / 9));
      }
      x += kStrokeAdvance * across;
    }
  }
  std::string finish() override { return data::encodePng(image_); }

 private:
  // Every pixel takes the colour by how much of it the line covers: by the distance of its centre.
  void segment(Point a, Point b, Colour colour, double width) {
    const double reach = width / 2 + 1, dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy;
    for (int y = low(std::min(a.y, b.y) - reach); y <= low(std::max(a.y, b.y) + reach); ++y)
      for (int x = low(std::min(a.x, b.x) - reach); x <= low(std::max(a.x, b.x) + reach); ++x) {
        const double px = x + 0.5 - a.x, py = y + 0.5 - a.y;
        const double t = square > 0 ? std::clamp((px * dx + py * dy) / square, 0.0, 1.0) : 0;
        mix(x, y, colour, std::clamp(width / 2 + 0.5 - std::hypot(px - t * dx, py - t * dy), 0.0, 1.0));
      }
  }
  static int low(double v) { return static_cast<int>(std::floor(v)); }
  void mix(int x, int y, Colour c, double share) {
    if (x < 0 || y < 0 || x >= image_.width || y >= image_.height) return;
    unsigned char* p =
        &image_.bytes[(static_cast<size_t>(y) * static_cast<size_t>(image_.width) + static_cast<size_t>(x)) * 3];
    const unsigned char bgr[3] = {c.b, c.g, c.r};
    for (int i = 0; i < 3; ++i) p[i] = static_cast<unsigned char>(std::lround(p[i] + share * (bgr[i] - p[i])));
  }

  data::Image image_;
};

}  // namespace

std::unique_ptr<Canvas> canvasFor(const std::string& path, double width, double height) {
  width = std::ceil(width), height = std::ceil(height);
  if (path.ends_with(".svg")) return std::make_unique<SvgCanvas>(width, height);
  if (path.ends_with(".png")) return std::make_unique<PngCanvas>(width, height);
  invalid("{}: the picture's name must end in .svg or .png", path);
}

}  // namespace crema::picture
