// crema classify: pictures from the command line, as BVLC's examples/cpp_classification: each is resized to the net's
// input (OpenCV's bilinear, no crop), less the mean of each channel, and the best of the net's answers are printed.
// Nets of one channel get grey images, converted as in Caffe's own layers.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/fd_io.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/picture_mean.h"
#include "data/image_file.h"
#include "model/upgrade.h"
#include "net/net.h"
#include "net/scoring_plan.h"

namespace crema::cli {
namespace {

struct ClassifyFlags {
  std::string model, weights, mean, labels, blob;
  std::vector<std::string> pictures;
  double scale = 1;
  int top = 5, threads = 0;
  bool json = false;
};

std::vector<std::string> linesOf(const std::string& path) {
  std::vector<std::string> lines;
  const std::string text = path.empty() ? "" : readFile(path);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

// A folder is replaced by the files in it, sorted by name.
std::vector<std::string> expanded(const std::vector<std::string>& given) {
  std::vector<std::string> all;
  for (const std::string& path : given) {
    if (!isDirectory(path)) {
      all.push_back(path);
      continue;
    }
    const size_t before = all.size();
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      std::string end = entry.path().extension().string();
      std::transform(end.begin(), end.end(), end.begin(), [](unsigned char c) { return std::tolower(c); });
      if (entry.is_regular_file() && (end == ".jpg" || end == ".jpeg" || end == ".png")) all.push_back(entry.path());
    }
    if (all.size() == before) invalid("there is no .jpg, .jpeg or .png in the folder {}", path);
    std::sort(all.begin() + static_cast<ptrdiff_t>(before), all.end());
  }
  return all;
}

std::string standardInput() {
  std::string bytes;
  if (!readToEnd(STDIN_FILENO, &bytes)) ioError("cannot read standard input: {}", systemError(errno));
  return bytes;
}

class Classifier {
 public:
  explicit Classifier(const ClassifyFlags& f, size_t pictures)
      : kernels_(kernels::bestIsa(), f.threads), scale_(static_cast<float>(f.scale)) {
    net::NetOptions o;
    o.kernels = &kernels_;
    o.needsBackward = false;
    o.data.source = layers::FromNowhere{};
    caffe::NetState state;
    state.set_phase(caffe::TEST);
    net_ = std::make_unique<net::Net>(model::readNet(f.model), state, o, f.model);
    net::copyTrainedFiles(*net_, f.weights);
    net::warnOfUntrained(*net_, f.weights);
    input_ = theInput(f.model);
    chooseOutput(f);
    const Shape& shape = input_->shape();
    if (shape.axes() != 4 || (shape[1] != 1 && shape[1] != 3) || shape[0] < 1)
      invalid("the input of {} is {}; pictures need N x 1 or 3 x height x width", f.model, shape.brief());
    channels_ = shape[1], height_ = shape[2], width_ = shape[3];
    means_ = channelMeans(f.mean, channels_);
    setBatch(static_cast<int>(std::min<size_t>(static_cast<size_t>(shape[0]), std::max<size_t>(pictures, 1))));
    plan_.emplace(*net_, std::set<std::string>{output_});
  }
  int batch() const { return batch_; }
  const std::string& name() const { return net_->name(); }
  int classes() const { return net_->blob(output_).count() / std::max(1, net_->blob(output_).shape()[0]); }

  // Reads a picture into an item of the input; throws kIo or kData and then leaves the input as it was.
  void load(const std::string& picture, int item) {
    const data::ImageReading how{channels_ == 1 ? data::ColourMode::kGrey : data::ColourMode::kColour, height_, width_};
    const data::Image image =
        picture == "-" ? data::imageOfFile(standardInput(), "standard input", how) : data::readImageFile(picture, how);
    const int area = height_ * width_;
    float* to = input_->mutableData<float>() + static_cast<ptrdiff_t>(item) * channels_ * area;
    for (int c = 0; c < channels_; ++c)
      for (int i = 0; i < area; ++i)
        *to++ =
            (static_cast<float>(image.bytes[static_cast<size_t>(i * channels_ + c)]) - means_[static_cast<size_t>(c)]) *
            scale_;
  }

  void run() { plan_->forward(); }

  // The best `count` classes of an item, best first; equal ones by number.
  std::vector<std::pair<int, float>> best(int item, int count) const {
    const int classes = this->classes();
    const float* scores = net_->blob(output_).data<float>() + static_cast<ptrdiff_t>(item) * classes;
    std::vector<int> order(static_cast<size_t>(classes));
    std::iota(order.begin(), order.end(), 0);
    if (std::any_of(scores, scores + classes, [](float s) { return std::isnan(s); }))
      badData("the net's answer is not a number; are these its weights, and its -mean and -scale?");
    count = std::min(count, classes);
    std::partial_sort(order.begin(), order.begin() + count, order.end(),
                      [&](int a, int b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
    std::vector<std::pair<int, float>> found;
    for (int i = 0; i < count; ++i)
      found.emplace_back(order[static_cast<size_t>(i)], scores[order[static_cast<size_t>(i)]]);
    return found;
  }

 private:
  Blob* theInput(const std::string& model) const {
    std::vector<std::string> inputs;
    for (int i = 0; i < static_cast<int>(net_->layers().size()); ++i)
      if (net_->layers()[static_cast<size_t>(i)]->type() == "Input")
        inputs.insert(inputs.end(), net_->topNames(i).begin(), net_->topNames(i).end());
      else if (net_->bottoms(i).empty() && !net_->tops(i).empty())
        invalid("{} reads its own records (layer '{}'); a deploy net, which begins with Input, takes pictures", model,
                net_->layers()[static_cast<size_t>(i)]->name());
    if (inputs.size() != 1) invalid("{} has {} inputs; pictures need a net with exactly one", model, inputs.size());
    return &net_->blob(inputs[0]);
  }

  void chooseOutput(const ClassifyFlags& f) {
    output_ = f.blob;
    const auto& outputs = net_->outputs();
    if (output_.empty() && outputs.size() == 1) output_ = outputs[0];
    if (output_.empty())
      invalid("{} has {} outputs ({}); say which has the scores: -blob NAME", f.model, outputs.size(), joined(outputs));
    const Shape& shape = net_->blob(output_).shape();
    if (shape.axes() < 2 || shape[0] != input_->shape()[0])
      invalid("blob '{}' is {}, which has no row of scores for each picture", output_, shape.brief());
  }

  // Makes the batch no larger than the number of pictures, where the net allows it.
  void setBatch(int wanted) {
    const int declared = input_->shape()[0];
    const auto reshape = [&](int n) {
      input_->reshape({n, channels_, height_, width_});
      net_->reshape();
      batch_ = n;
      return net_->blob(output_).shape()[0] == n;
    };
    try {
      if (reshape(wanted)) return;
    } catch (const Error&) {  // a net that fixes its batch, such as by a Reshape
    }
    reshape(declared);
  }

  kernels::Context kernels_;
  kernels::FrozenWeights frozen_{kernels_};  // no pass is before they are loaded
  std::unique_ptr<net::Net> net_;
  std::optional<net::ScoringPlan> plan_;
  Blob* input_ = nullptr;
  std::string output_;
  std::vector<float> means_;
  float scale_;
  int channels_ = 0, height_ = 0, width_ = 0, batch_ = 1;
};

struct Answer {
  std::string picture, error;
  std::vector<std::pair<int, float>> best;
};

void show(const Answer& a, const std::vector<std::string>& labels) {
  if (!a.error.empty()) return;
  std::printf("---------- Prediction for %s ----------\n", a.picture.c_str());
  for (const auto& [index, score] : a.best)
    std::printf("%.4f - \"%s\"\n", static_cast<double>(score),
                labels.empty() ? std::to_string(index).c_str() : labels[static_cast<size_t>(index)].c_str());
}

void write(const Answer& a, const std::vector<std::string>& labels, Json& json) {
  json.object();
  json.text("picture", a.picture);
  if (!a.error.empty()) json.text("error", a.error);
  json.array("predictions");
  for (const auto& [index, score] : a.best) {
    json.object();
    json.integer("index", index);
    labels.empty() ? json.null("label") : json.text("label", labels[static_cast<size_t>(index)]);
    json.number("score", score);
    json.end();
  }
  json.end(), json.end();
}

// Classifies one batch; pictures that cannot be read are left out of it.
std::vector<Answer> answers(Classifier& classifier, const std::string* pictures, size_t count, int top) {
  std::vector<Answer> all(count);
  int loaded = 0;
  std::vector<int> place(count, -1);
  for (size_t i = 0; i < count; ++i) {
    all[i].picture = pictures[i];
    try {
      classifier.load(pictures[i], loaded);
      place[i] = loaded++;
    } catch (const Error& e) {
      all[i].error = e.what();
      std::fprintf(stderr, "crema: %s\n", e.what());
    }
  }
  if (loaded) classifier.run();
  for (size_t i = 0; i < count; ++i)
    if (place[i] >= 0) all[i].best = classifier.best(place[i], top);
  return all;
}

int classify(const ClassifyFlags& f) {
  setLogLevel(LogLevel::kWarning);
  if (f.pictures.empty()) invalid("which pictures? Name files or folders, or - for standard input");
  if (f.top < 1) invalid("-top must be at least 1, not {}", f.top);
  const std::vector<std::string> pictures = expanded(f.pictures), labels = linesOf(f.labels);
  Classifier classifier(f, pictures.size());
  if (!labels.empty() && labels.size() != static_cast<size_t>(classifier.classes()))
    invalid("{} has {} labels, and the net gives {} scores for a picture", f.labels, labels.size(),
            classifier.classes());
  Json json;
  json.text("net", classifier.name());
  json.array("pictures");
  size_t failed = 0;
  const auto batch = static_cast<size_t>(classifier.batch());
  for (size_t i = 0; i < pictures.size(); i += batch)
    for (const Answer& a : answers(classifier, &pictures[i], std::min(batch, pictures.size() - i), f.top)) {
      f.json ? write(a, labels, json) : show(a, labels);
      failed += !a.error.empty();
    }
  if (f.json) json.print();
  if (failed) badData("{} of {} pictures could not be read; they are named above", failed, pictures.size());
  return 0;
}

}  // namespace

void addClassify(CLI::App& program, Run& chosen) {
  addCommand(
      program, "classify", "what a model sees in pictures",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<ClassifyFlags>();
        app.add_option("--model", f->model, "the deploy prototxt, which begins with Input")->required();
        app.add_option("--weights", f->weights, "the .caffemodel[.h5] files, separated by commas")->required();
        app.add_option("--mean", f->mean,
                       "a .binaryproto or .npy, of which the mean of each channel is taken, or values: 104,117,123");
        app.add_option("--scale", f->scale, "what pixels less their mean are multiplied by")->capture_default_str();
        app.add_option("--labels", f->labels, "a file with a line for each class");
        app.add_option("--top", f->top, "how many classes to name")->capture_default_str();
        app.add_option("--blob", f->blob, "the scores, where the net has several outputs");
        app.add_option("--threads", f->threads, "threads; 0: all cores")->capture_default_str();
        app.add_flag("--json", f->json, "{net, pictures: [{picture, error?, predictions: [{index, label, score}]}]}");
        app.add_option("pictures", f->pictures, "JPEG or PNG files, folders of them, or - for standard input");
        return [f] { return classify(*f); };
      },
      chosen);
}

}  // namespace crema::cli
