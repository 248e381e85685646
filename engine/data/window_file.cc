#include "data/window_file.h"

#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/file.h"

namespace crema::data {
namespace {

class Tokens {
 public:
  Tokens(std::string_view text, const std::string& path) : rest_(text), path_(path) {}

  bool more() {
    while (!rest_.empty() && space(rest_.front())) rest_.remove_prefix(1);
    return !rest_.empty();
  }
  std::string_view word(const char* what) {
    if (!more()) badData("{} ends where {} is expected{}; write it anew", path_, what, where());
    size_t n = 0;
    while (n < rest_.size() && !space(rest_[n])) ++n;
    return take(n);
  }
  std::string_view line(const char* what) {
    if (!more()) badData("{} ends where {} is expected{}; write it anew", path_, what, where());
    std::string_view line = take(std::min(rest_.find('\n'), rest_.size()));
    while (space(line.back())) line.remove_suffix(1);
    return line;
  }
  template <class T>
  T number(const char* what) {
    const std::string_view text = word(what);
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      badData("{}: '{}' stands where {} is expected{}", path_, text, what, where());
    return value;
  }
  void inImage(std::string_view image) { image_ = image; }
  std::string where() const { return image_.empty() ? "" : fmt::format(", in the part of image '{}'", image_); }

 private:
  static bool space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
  std::string_view take(size_t n) {
    const std::string_view head = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return head;
  }

  std::string_view rest_, image_;
  const std::string& path_;
};

ImageWindow readWindow(Tokens& in, int32_t image, float* overlap) {
  ImageWindow w{image};
  w.label = in.number<int32_t>("a window's class");
  *overlap = in.number<float>("a window's overlap");
  w.x1 = in.number<int32_t>("a window's x1, a whole number,"), w.y1 = in.number<int32_t>("a window's y1");
  w.x2 = in.number<int32_t>("a window's x2"), w.y2 = in.number<int32_t>("a window's y2");
  constexpr int32_t kMost = 1 << 24;  // exact in float, and sums of two stay ints
  for (const int32_t v : {w.x1, w.y1, w.x2, w.y2})
    if (v < -kMost || v > kMost || w.x2 < w.x1 || w.y2 < w.y1)
      badData("the window {} {} {} {} is none; bounds are x1 <= x2, y1 <= y2{}", w.x1, w.y1, w.x2, w.y2, in.where());
  return w;
}

}  // namespace

WindowFile::WindowFile(const WindowOptions& o)
    : path_(o.param.source()), root_(o.param.root_folder()), folder_(o.folder) {
  const std::string text = readFile(path_);
  Tokens in(text, path_);
  if (!in.more()) badData("{}: Window file is empty", path_);
  std::vector<ImageWindow> background;
  while (in.more()) {
    if (const auto mark = in.word("'#'"); mark != "#")
      badData("{}: '{}' stands where '#' and an image's number are expected{}; is the count of windows right?", path_,
              mark, in.where());
    in.number<int64_t>("an image's number");
    images_.emplace_back(in.line("an image's path"));
    in.inImage(images_.back());
    for (const char* what : {"the channels", "the height", "the width"}) in.number<int64_t>(what);
    const auto count = in.number<int64_t>("the count of windows");
    for (int64_t i = 0; i < count; ++i) {
      float overlap = 0;
      ImageWindow w = readWindow(in, static_cast<int32_t>(images_.size()) - 1, &overlap);
      if (overlap >= o.param.fg_threshold()) {
        if (w.label <= 0)
          badData("{}: a foreground window has class {}; classes start at 1{}", path_, w.label, in.where());
        windows_.push_back(w);
      } else if (overlap < o.param.bg_threshold()) {
        w.label = 0;
        background.push_back(w);
      }
    }
  }
  foreground_ = static_cast<int64_t>(windows_.size());
  windows_.insert(windows_.end(), background.begin(), background.end());
  if (!o.cache) return;
  for (const auto& image : images_) cache_.push_back(readFile(resolvePath(root_ + image, folder_)));
}

Record WindowFile::read(int64_t i) const {
  const ImageWindow& w = windows_[static_cast<size_t>(i)];
  return {images_[static_cast<size_t>(w.image)], {reinterpret_cast<const char*>(&w), sizeof w}};
}

std::string WindowFile::fileOf(const Record& record) const {
  return resolvePath(root_ + std::string(record.key), folder_);
}

Image WindowFile::image(const Record& record) const {
  ImageWindow w{};
  std::memcpy(&w, record.value.data(), sizeof w);
  const std::string path = fileOf(record);
  return cache_.empty() ? readImageFile(path, {}) : imageOfFile(cache_[static_cast<size_t>(w.image)], path, {});
}

}  // namespace crema::data
