// crema plot LOG... -output FILE: loss and accuracy curves of training logs. Outputs with "loss" in their names share
// the upper panel, all others the lower one; with several logs each curve's name begins with its log's.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/training_log.h"
#include "picture/canvas.h"

namespace crema::cli {
namespace {

struct PlotFlags {
  std::vector<std::string> logs;
  std::string output = "training.svg", x = "iterations";
};

struct Curve {
  std::string name;
  std::vector<picture::Point> points;
};
struct Range {
  double low = HUGE_VAL, high = -HUGE_VAL;
  void take(double v) { low = std::min(low, v), high = std::max(high, v); }
};

constexpr double kWidth = 900, kPanel = 320, kLeft = 80, kRight = 220, kTop = 40, kGap = 70;
constexpr picture::Colour kBlack{40, 40, 40}, kGrid{220, 220, 220};
constexpr picture::Colour kColours[] = {{31, 119, 180},  {214, 39, 40}, {44, 160, 44},  {255, 127, 14},
                                        {148, 103, 189}, {140, 86, 75}, {23, 190, 207}, {127, 127, 127}};

void collect(const std::vector<LogRow>& rows, const std::string& prefix, bool seconds, std::vector<Curve>& losses,
             std::vector<Curve>& others) {
  std::map<std::string, Curve> curves;
  std::vector<std::string> order;
  for (const LogRow& r : rows)
    for (const auto& [name, value] : r.outputs) {
      if (!curves.count(name)) order.push_back(name), curves[name].name = prefix + name;
      if (std::isfinite(value)) curves[name].points.push_back({seconds ? r.seconds : r.iteration, value});
    }
  for (const auto& name : order)
    if (!curves[name].points.empty())
      (name.find("loss") != std::string::npos ? losses : others).push_back(curves[name]);
}

// The values of an axis's ticks: about five steps of 1, 2 or 5 times a power of ten.
std::vector<double> ticks(const Range& r) {
  const double span = std::max(r.high - r.low, 1e-12), power = std::pow(10, std::floor(std::log10(span / 5)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0})
    if (span / step > 6) step = power * factor;
  std::vector<double> all;
  for (double t = std::ceil(r.low / step - 1e-9) * step; t <= r.high + 1e-9 * span; t += step)
    all.push_back(std::fabs(t) < step / 1e6 ? 0 : t);
  return all;
}

class Panel {
 public:
  Panel(picture::Canvas& canvas, const std::vector<Curve>& curves, double top) : canvas_(canvas), top_(top) {
    for (const Curve& c : curves)
      for (const picture::Point& p : c.points) x_.take(p.x), y_.take(p.y);
    if (x_.high <= x_.low) x_.high = x_.low + 1;
    const double margin = y_.high > y_.low ? (y_.high - y_.low) * 0.05 : 0.5;
    y_.low -= margin, y_.high += margin;
  }
  void axes(const std::string& x, const std::string& y) {
    for (const double t : ticks(y_)) {
      canvas_.line({{kLeft, py(t)}, {kWidth - kRight, py(t)}}, kGrid, 1);
      canvas_.text({kLeft - 8, py(t) + 4}, fmt::format("{:.6g}", t), picture::Anchor::kEnd, 9, kBlack);
    }
    for (const double t : ticks(x_)) {
      canvas_.line({{px(t), top_ + kPanel}, {px(t), top_ + kPanel + 5}}, kBlack, 1);
      canvas_.text({px(t), top_ + kPanel + 18}, fmt::format("{:.6g}", t), picture::Anchor::kMiddle, 9, kBlack);
    }
    canvas_.line({{kLeft, top_}, {kLeft, top_ + kPanel}, {kWidth - kRight, top_ + kPanel}}, kBlack, 1);
    canvas_.text({(kLeft + kWidth - kRight) / 2, top_ + kPanel + 36}, x, picture::Anchor::kMiddle, 10, kBlack);
    canvas_.text({kLeft, top_ - 10}, y, picture::Anchor::kStart, 11, kBlack);
  }
  void curve(const Curve& c, size_t number) {
    const picture::Colour colour = kColours[number % std::size(kColours)];
    std::vector<picture::Point> points;
    for (const picture::Point& p : c.points) points.push_back({px(p.x), py(p.y)});
    canvas_.line(points, colour, 1.6);
    if (points.size() <= 60)
      for (const picture::Point& p : points) canvas_.box({p.x - 2, p.y - 2}, {4, 4}, colour, colour);
    const double y = top_ + 12 + 18 * static_cast<double>(number);
    canvas_.line({{kWidth - kRight + 14, y - 4}, {kWidth - kRight + 34, y - 4}}, colour, 2.5);
    canvas_.text({kWidth - kRight + 40, y}, c.name, picture::Anchor::kStart, 9, kBlack);
  }

 private:
  double px(double x) const { return kLeft + (x - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight); }
  double py(double y) const { return top_ + kPanel - (y - y_.low) / (y_.high - y_.low) * kPanel; }
  picture::Canvas& canvas_;
  double top_;
  Range x_, y_;
};

int plot(const PlotFlags& f) {
  if (f.x != "iterations" && f.x != "seconds") invalid("-x must be iterations or seconds, not '{}'", f.x);
  std::vector<Curve> losses, others;
  for (const auto& path : f.logs) {
    const TrainingLog log = readTrainingLog(path);
    const std::string whose = f.logs.size() > 1 ? path.substr(path.rfind('/') + 1) + ": " : "";
    collect(log.train, whose + "train ", f.x == "seconds", losses, others);
    collect(log.test, whose + "test ", f.x == "seconds", losses, others);
  }
  if (losses.empty() && others.empty()) badData("{} names no output of a net yet: there is nothing to draw", f.logs[0]);
  const int panels = !losses.empty() + !others.empty();
  const auto canvas = picture::canvasFor(f.output, kWidth, panels * (kPanel + kGap) + kTop);
  double top = kTop;
  for (const auto& [curves, title] : {std::pair{&losses, "loss"}, std::pair{&others, "accuracy and other outputs"}}) {
    if (curves->empty()) continue;
    Panel panel(*canvas, *curves, top);
    panel.axes(f.x, title);
    for (size_t i = 0; i < curves->size(); ++i) panel.curve((*curves)[i], i);
    top += kPanel + kGap;
  }
  writeFileAtomically(f.output, canvas->finish());
  std::printf("Wrote %s\n", f.output.c_str());
  return 0;
}

}  // namespace

void addPlot(CLI::App& program, Run& chosen) {
  addCommand(
      program, "plot", "loss and accuracy curves of training logs, as SVG or PNG",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<PlotFlags>();
        app.add_option("logs", f->logs, "logs of `train`")->required();
        app.add_option("--output", f->output, "the picture, .svg or .png")->capture_default_str();
        app.add_option("-x,--x", f->x, "iterations or seconds")->capture_default_str();
        return [f] { return plot(*f); };
      },
      chosen);
}

}  // namespace crema::cli
