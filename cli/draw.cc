// crema draw -model NET -output FILE, or as Caffe's draw_net.py, NET FILE: a net as a picture, without Graphviz. A box
// is a layer, an edge a blob with its shape; layers that work in place stand in the box of the layer whose blob they
// change. A net that cannot be built here, as its data or a layer's type are missing, is drawn without shapes.
#include <cstdio>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/described_net.h"
#include "model/filter.h"
#include "model/upgrade.h"
#include "picture/graph_picture.h"

namespace crema::cli {
namespace {

picture::Colour fillOf(const std::string& type) {
  if (type.find("Data") != std::string::npos || type == "Input") return {225, 225, 225};
  if (type.find("onvolution") != std::string::npos) return {205, 220, 245};
  if (type == "InnerProduct" || type == "LSTM" || type == "RNN" || type == "Embed") return {215, 205, 240};
  if (type == "Pooling" || type == "SPP") return {250, 220, 190};
  if (type.find("Loss") != std::string::npos) return {250, 200, 200};
  if (type == "Accuracy" || type == "ArgMax") return {205, 235, 205};
  return {245, 240, 200};
}

std::string options(const layers::Layer& layer) {
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

// The learning rate multipliers of its parameters.
std::string rates(const layers::Layer& layer) {
  std::string all;
  for (int i = 0; i < static_cast<int>(layer.params().size()); ++i)
    all += fmt::format("{}{:.3g}", i ? ", " : "lr_mult ",
                       i < layer.param().param_size() ? layer.param().param(i).lr_mult() : 1.f);
  return all;
}

// How text is set: a graph that runs sideways has narrower boxes with more lines.
struct Style {
  bool narrow = false, rates = false;

  std::vector<std::string> lines(const std::string& name, const std::string& type,
                                 const std::vector<std::string>& more) const {
    std::vector<std::string> all = {name};
    if (const std::string rest = "(" + type + ")"; narrow && name.size() + rest.size() > kNarrow)
      all.push_back(rest);
    else
      all[0] += " " + rest;
    for (const auto& m : more)
      if (!m.empty()) all.push_back(m);
    return all;
  }
  std::string words(const std::string& blob, const std::string& shape) const {
    return blob + (narrow ? "\n" : " ") + shape;
  }

 private:
  static constexpr size_t kNarrow = 20;
};

void append(std::vector<std::string>& all, const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

picture::Graph graphOf(const DescribedNet& d, Style style) {
  picture::Graph graph;
  std::map<std::string, int> maker;  // blob -> the box that makes it
  const net::Net& net = d.net();
  for (int i = 0; i < static_cast<int>(net.layers().size()); ++i) {
    if (d.isCopy(i)) continue;
    const layers::Layer& layer = *net.layers()[static_cast<size_t>(i)];
    const auto bottoms = d.bottoms(i), tops = d.tops(i);
    const auto lines = style.lines(layer.name(), d.typeOf(i), {options(layer), style.rates ? rates(layer) : ""});
    if (bottoms.size() == 1 && tops.size() == 1 && net.tops(i)[0] == net.bottoms(i)[0]) {
      append(graph.boxes[static_cast<size_t>(maker.at(bottoms[0]))].lines, lines);
      continue;
    }
    const int box = static_cast<int>(graph.boxes.size());
    graph.boxes.push_back({lines, fillOf(d.typeOf(i))});
    for (size_t b = 0; b < bottoms.size(); ++b) {
      const std::string shape = net.bottoms(i)[b]->shape().axes() ? net.bottoms(i)[b]->shape().brief() : "scalar";
      graph.edges.push_back({maker.at(bottoms[b]), box, style.words(bottoms[b], shape)});
    }
    for (const auto& top : tops) maker[top] = box;
  }
  return graph;
}

// The graph without shapes, from the prototxt alone.
picture::Graph sketchOf(const caffe::NetParameter& net, Style style) {
  picture::Graph graph;
  std::map<std::string, int> maker;
  const auto box = [&](const std::vector<std::string>& lines, const std::string& type) {
    graph.boxes.push_back({lines, fillOf(type)});
    return static_cast<int>(graph.boxes.size()) - 1;
  };
  const auto makerOf = [&](const std::string& blob) {
    if (!maker.count(blob)) maker[blob] = box({blob + " (given)"}, "Input");
    return maker[blob];
  };
  for (const std::string& input : net.input()) makerOf(input);
  for (const caffe::LayerParameter& layer : net.layer()) {
    const auto lines = style.lines(layer.name(), layer.type(), {});
    if (layer.bottom_size() == 1 && layer.top_size() == 1 && layer.top(0) == layer.bottom(0)) {
      append(graph.boxes[static_cast<size_t>(makerOf(layer.bottom(0)))].lines, lines);
      continue;
    }
    std::vector<int> from;
    for (const std::string& bottom : layer.bottom()) from.push_back(makerOf(bottom));
    const int me = box(lines, layer.type());
    for (size_t b = 0; b < from.size(); ++b) graph.edges.push_back({from[b], me, layer.bottom(static_cast<int>(b))});
    for (const std::string& top : layer.top()) maker[top] = me;
  }
  return graph;
}

picture::Graph shapedOrSketched(const NetFlags& f, Style style) {
  try {
    return graphOf(DescribedNet(f), style);
  } catch (const Error& e) {
    const caffe::NetParameter net = model::readNet(f.model);
    picture::Graph graph = sketchOf(model::filterNet(net, stateOf(f, net)), style);
    if (graph.boxes.empty()) throw;
    const std::string message = e.what();
    std::printf("Drawn without shapes: %s\n", message.substr(0, message.find('\n')).c_str());
    return graph;
  }
}

struct DrawFlags {
  NetFlags net;
  std::string output = "net.svg", direction = "TB";
  bool rates = false;
};

int draw(DrawFlags f) {
  if (f.net.model.empty()) invalid("which net? Give -model and -output, or the net prototxt and the picture");
  if (f.net.phase == "ALL") {
    f.net.phase = NetFlags().phase;
    LOG_WARNING("a picture shows one phase; this is {}", f.net.phase);
  }
  picture::Graph graph = shapedOrSketched(f.net, {f.direction == "LR" || f.direction == "RL", f.rates});
  const std::string name = model::readNet(f.net.model).name();
  graph.title = (name.empty() ? f.net.model : name) + ", phase " + f.net.phase;
  graph.direction = f.direction;
  writeFileAtomically(f.output, picture::drawGraph(graph, f.output));
  std::printf("Wrote %s\n", f.output.c_str());
  return 0;
}

}  // namespace

void addDraw(CLI::App& program, Run& chosen) {
  addCommand(
      program, "draw", "a net as a picture, SVG or PNG",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<DrawFlags>();
        addNetFlags(app, f->net);
        app.get_option("--model")->required(false);
        app.add_option("--output", f->output, "the picture, .svg or .png")->capture_default_str();
        app.add_option("output_image_file", f->output, "as -output");
        app.add_option("--rankdir", f->direction, "where the graph runs: TB, BT, LR or RL")->capture_default_str();
        app.add_flag("--display_lrm", f->rates, "shows the learning rate multipliers");
        return [f] { return draw(*f); };
      },
      chosen);
}

}  // namespace crema::cli
