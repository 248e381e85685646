// crema draw -model NET -output FILE: a net as a picture, without Graphviz. A box is a layer, an edge a blob with its
// shape; layers that work in place stand in the box of the layer whose blob they change.
#include <cstdio>

#include "base/error.h"
#include "base/file.h"
#include "cli/described_net.h"
#include "cli/graph_layout.h"

namespace crema::cli {
namespace {

constexpr double kLetter = 9, kLine = 15;
constexpr Colour kEdge{90, 90, 90}, kInk{20, 20, 20};

Colour fillOf(const std::string& type) {
  if (type.find("Data") != std::string::npos || type == "Input") return {225, 225, 225};
  if (type.find("onvolution") != std::string::npos) return {205, 220, 245};
  if (type == "InnerProduct" || type == "LSTM" || type == "RNN" || type == "Embed") return {215, 205, 240};
  if (type == "Pooling" || type == "SPP") return {250, 220, 190};
  if (type.find("Loss") != std::string::npos) return {250, 200, 200};
  if (type == "Accuracy" || type == "ArgMax") return {205, 235, 205};
  return {245, 240, 200};
}

std::string options(const Layer& layer) {
  const auto& p = layer.param();
  if (p.has_convolution_param() && !layer.params().empty()) return "weights " + layer.params()[0]->shape().brief();
  if (p.has_inner_product_param() && !layer.params().empty()) return "weights " + layer.params()[0]->shape().brief();
  if (p.has_pooling_param())
    return caffe::PoolingParameter::PoolMethod_Name(p.pooling_param().pool()) +
           (p.pooling_param().global_pooling()
                ? " of all"
                : fmt::format(" {0}x{0} / {1}", p.pooling_param().kernel_size(), p.pooling_param().stride()));
  if (p.has_dropout_param()) return fmt::format("ratio {:.3g}", p.dropout_param().dropout_ratio());
  return "";
}

struct Drawn {
  std::vector<std::string> lines;
  std::string type;
};

class Picture {
 public:
  explicit Picture(const DescribedNet& d) {
    const Net& net = d.net();
    for (int i = 0; i < static_cast<int>(net.layers().size()); ++i) {
      if (d.isCopy(i)) continue;
      const Layer& layer = *net.layers()[static_cast<size_t>(i)];
      const auto bottoms = d.bottoms(i), tops = d.tops(i);
      const std::string more = options(layer),
                        line = layer.name() + " (" + layer.type() + ")" + (more.empty() ? "" : ", " + more);
      if (bottoms.size() == 1 && tops.size() == 1 && net.tops(i)[0] == net.bottoms(i)[0]) {
        boxes_[static_cast<size_t>(maker_.at(bottoms[0]))].lines.push_back(line);
        continue;
      }
      const int box = static_cast<int>(boxes_.size());
      boxes_.push_back({{line}, layer.type()});
      for (size_t b = 0; b < bottoms.size(); ++b) {
        const std::string shape = net.bottoms(i)[b]->shape().axes() ? net.bottoms(i)[b]->shape().brief() : "scalar";
        graph_.edges.push_back({maker_.at(bottoms[b]), box, bottoms[b] + " " + shape, {}});
      }
      for (const auto& top : tops) maker_[top] = box;
    }
    for (const Drawn& b : boxes_) {
      double wide = 0;
      for (const auto& l : b.lines) wide = std::max(wide, Canvas::textWidth(l, kLetter));
      graph_.boxes.push_back({wide + 20, kLine * static_cast<double>(b.lines.size()) + 10, {}});
    }
    layOut(graph_);
  }

  std::string paint(const std::string& path, const std::string& title) const {
    constexpr double kTitle = 30, kRoom = 200;  // words of edges may stand beside the last box
    const auto canvas = canvasFor(path, graph_.size.x + kRoom, graph_.size.y + kTitle);
    canvas->text({20, 22}, title, Anchor::kStart, 12, kInk);
    const auto down = [&](Point p) { return Point{p.x, p.y + kTitle}; };
    for (const auto& e : graph_.edges) {
      std::vector<Point> points;
      for (const Point& p : e.path) points.push_back(down(p));
      canvas->line(points, kEdge, 1.2);
      const Point end = points.back();
      canvas->line({{end.x - 4, end.y - 7}, end, {end.x + 4, end.y - 7}}, kEdge, 1.2);
      const Point a = points[points.size() - 2];
      canvas->text({end.x + (a.x - end.x) * 0.35 + 5, end.y + (a.y - end.y) * 0.35}, e.words, Anchor::kStart, 7, kEdge);
    }
    for (size_t i = 0; i < boxes_.size(); ++i) {
      const auto& b = graph_.boxes[i];
      const Point c = down(b.centre);
      canvas->box({c.x - b.width / 2, c.y - b.height / 2}, {b.width, b.height}, fillOf(boxes_[i].type), kEdge);
      for (size_t l = 0; l < boxes_[i].lines.size(); ++l)
        canvas->text({c.x, c.y - b.height / 2 + 16 + kLine * static_cast<double>(l)}, boxes_[i].lines[l],
                     Anchor::kMiddle, kLetter, kInk);
    }
    return canvas->finish();
  }

 private:
  std::vector<Drawn> boxes_;
  Graph graph_;
  std::map<std::string, int> maker_;  // blob -> the box that makes it
};

int draw(const NetFlags& f, const std::string& output) {
  const DescribedNet described(f);
  const Picture picture(described);
  writeFileAtomically(output, picture.paint(output, described.net().name() + ", phase " + f.phase));
  std::printf("Wrote %s\n", output.c_str());
  return 0;
}

}  // namespace

void addDraw(CLI::App& program, Run& chosen) {
  addCommand(
      program, "draw", "a net as a picture, SVG or PNG",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<NetFlags>();
        auto output = std::make_shared<std::string>("net.svg");
        addNetFlags(app, *f);
        app.add_option("--output", *output, "the picture, .svg or .png")->capture_default_str();
        return [f, output] { return draw(*f, *output); };
      },
      chosen);
}

}  // namespace crema::cli
