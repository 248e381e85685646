#include "picture/canvas.h"

#include <agg_conv_stroke.h>
#include <agg_gsv_text.h>
#include <agg_path_storage.h>
#include <agg_pixfmt_rgb.h>
#include <agg_rasterizer_scanline_aa.h>
#include <agg_renderer_scanline.h>
#include <agg_rounded_rect.h>
#include <agg_scanline_u.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/encode.h"

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

// Anti-Grain Geometry covers the pixels; its own font of strokes stands for SVG's sans-serif.
class PngCanvas : public Canvas {
 public:
  PngCanvas(double width, double height) {
    image_.channels = 3, image_.width = static_cast<int>(width), image_.height = static_cast<int>(height);
    if (int64_t{image_.width} * image_.height > (int64_t{1} << 27))
      invalid("a picture of {} x {} is too large for a PNG; name an .svg", image_.width, image_.height);
    image_.bytes.assign(static_cast<size_t>(image_.width) * static_cast<size_t>(image_.height) * 3, 255);
    rows_.attach(image_.bytes.data(), static_cast<unsigned>(image_.width), static_cast<unsigned>(image_.height),
                 image_.width * 3);
  }
  // In pieces: a rasterizer holds four million cells of pixels, and leaves out what is more without a word.
  void line(const std::vector<Point>& points, Colour colour, double width) override {
    constexpr size_t kPiece = 256;
    for (size_t first = 0; first + 1 < points.size(); first += kPiece) {
      agg::path_storage path;
      path.move_to(points[first].x, points[first].y);
      for (size_t i = first + 1; i <= std::min(first + kPiece, points.size() - 1); ++i)
        path.line_to(points[i].x, points[i].y);
      stroke(path, colour, width);
    }
  }
  void box(Point corner, Point size, Colour fill, Colour edge) override {
    agg::rounded_rect shape(corner.x, corner.y, corner.x + size.x, corner.y + size.y, 4);
    shape.normalize_radius();
    cover(shape, fill);
    stroke(shape, edge, 1);
  }
  void text(Point at, const std::string& words, Anchor anchor, double size, Colour colour) override {
    const double width = textWidth(words, size);
    std::string known = words;  // the font has ASCII
    std::replace_if(
        known.begin(), known.end(), [](unsigned char c) { return c < 32 || c > 126; }, '?');
    agg::gsv_text letters;
    letters.flip(true);
    letters.size(size);
    letters.text(known.c_str());
    if (const double wide = letters.text_width(); wide > 0) letters.size(size, size * width / wide);
    letters.start_point(at.x - (anchor == Anchor::kMiddle ? width / 2 : anchor == Anchor::kEnd ? width : 0), at.y);
    stroke(letters, colour, std::max(1.0, size / 9));
  }
  std::string finish() override { return data::encodePng(image_); }

 private:
  template <class Shape>
  void stroke(Shape& shape, Colour colour, double width) {
    agg::conv_stroke<Shape> outline(shape);
    outline.width(width);
    outline.line_join(agg::round_join);
    outline.line_cap(agg::round_cap);
    cover(outline, colour);
  }
  template <class Shape>
  void cover(Shape& shape, Colour c) {
    agg::pixfmt_bgr24 pixels(rows_);
    agg::renderer_base<agg::pixfmt_bgr24> canvas(pixels);
    agg::rasterizer_scanline_aa<> rasterizer;
    agg::scanline_u8 scanline;
    rasterizer.add_path(shape);
    agg::render_scanlines_aa_solid(rasterizer, scanline, canvas, agg::rgba8(c.r, c.g, c.b));
  }

  data::Image image_;
  agg::rendering_buffer rows_;
};

}  // namespace

std::unique_ptr<Canvas> canvasFor(const std::string& path, double width, double height) {
  width = std::ceil(width), height = std::ceil(height);
  if (path.ends_with(".svg")) return std::make_unique<SvgCanvas>(width, height);
  if (path.ends_with(".png")) return std::make_unique<PngCanvas>(width, height);
  invalid("{}: the picture's name must end in .svg or .png", path);
}

}  // namespace crema::picture
