#include "data/image_list.h"

#include <charconv>

#include "base/error.h"
#include "base/file.h"
#include "data/transformer.h"

namespace crema::data {
namespace {

bool blank(char c) { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (blank(s.back()) || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

bool wholeNumber(std::string_view s, int* value) {
  if (!s.empty() && s.front() == '+') s.remove_prefix(1);
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), *value);
  return error == std::errc() && end == s.data() + s.size();
}

}  // namespace

ImageList::ImageList(const std::string& path) : path_(path), text_(readFile(path)) {
  int64_t number = 0;
  for (size_t at = 0; at < text_.size();) {
    const size_t end = std::min(text_.find('\n', at), text_.size());
    const std::string_view line = trimmed(std::string_view(text_).substr(at, end - at));
    ++number;
    if (!line.empty()) lines_.push_back(parseLine(at, line, number));
    at = end + 1;
  }
  if (lines_.empty()) badData("{} lists no images: File is empty; write lines `path label`", path);
}

ImageList::Line ImageList::parseLine(size_t at, std::string_view line, int64_t number) const {
  size_t last = line.size();
  while (last > 0 && !blank(line[last - 1])) --last;
  int label = 0;
  if (last == 0)
    badData("line {} of {}, '{}', has no label; write the class, a whole number, behind the path and a blank", number,
            path_, line);
  if (!wholeNumber(line.substr(last), &label))
    badData("line {} of {}: '{}' is no label; the class behind the last blank must be a whole number below 2^31",
            number, path_, line.substr(last));
  const std::string_view name = line.substr(0, last - 1);  // as in Caffe, of several blanks only the last separates
  if (trimmed(name).empty()) badData("line {} of {} has a label and no path", number, path_);
  return {at, static_cast<uint32_t>(trimmed(name).size()), static_cast<uint32_t>(line.size()), number};
}

Record ImageList::read(int64_t i) const {
  const Line& l = lines_[static_cast<size_t>((i + skip_) % size())];
  const std::string_view text = text_;
  return {text.substr(l.at, l.path), text.substr(l.at, l.whole)};
}

ListedImage ImageList::parse(const Record& record) {
  ListedImage image{record.key, 0};
  std::string_view rest = record.value;
  rest.remove_prefix(std::max(rest.rfind(' ') + 1, rest.rfind('\t') + 1));
  wholeNumber(rest, &image.label);
  return image;
}

ListedImage ImageList::at(int64_t i) const { return parse(read(i)); }

int64_t ImageList::lineOf(const Record& record) const {
  const auto at = static_cast<size_t>(record.value.data() - text_.data());
  const auto found =
      std::lower_bound(lines_.begin(), lines_.end(), at, [](const Line& l, size_t a) { return l.at < a; });
  return found->number;
}

std::string fileOf(const ListedImages& options, const Record& record) {
  return resolvePath(options.root + std::string(record.key), options.folder);
}

namespace {

class ListedImageSamples : public SampleMaker {
  template <class Use>
  auto load(const Record& record, Use use) const {
    const std::string path = fileOf(options_, record);
    return inside(
        [&] { return fmt::format("at line {} of {}, which names {}", list_->lineOf(record), list_->describe(), path); },
        [&] { return use(readImageFile(path, options_.reading)); });
  }

 public:
  ListedImageSamples(const ListedImages& options, std::shared_ptr<const ImageList> list)
      : options_(options), list_(std::move(list)), transformer_(options.transform, options.phase, options.folder) {
    shapes_ = {load(list_->read(0), [&](const Image& i) { return transformer_.outputShape(i.view()); }), Shape{}};
  }
  bool varies() const override { return options_.varies; }

  void make(const Record& record, const SampleRandom& random, int item, const std::vector<float*>& out) const override {
    load(record, [&](const Image& image) {
      const Shape becomes = transformer_.outputShape(image.view());
      if (!(becomes == shapes_[0]))
        badData(
            "it is {} and becomes {}, the first image becomes {}; give new_height and new_width, crop_size, or "
            "batch_size 1",
            shapeText(image.view()), becomes.brief(), shapes_[0].brief());
      transform(image, record, random, item, out[0], out[1]);
    });
  }
  void makeOne(const Record& record, const SampleRandom& random, std::vector<Shape>* shapes,
               std::vector<std::vector<float>>* tops) const override {
    load(record, [&](const Image& image) {
      (*shapes)[0] = transformer_.outputShape(image.view());
      (*tops)[0].resize(static_cast<size_t>((*shapes)[0].count()));
      transform(image, record, random, 0, (*tops)[0].data(), (*tops)[1].data());
    });
  }

 private:
  void transform(const Image& image, const Record& record, const SampleRandom& random, int item, float* data,
                 float* label) const {
    transformer_.apply<float>(image.view(), random.stream(RandomPurpose::kMirror, ""),
                              random.stream(RandomPurpose::kCrop, ""), item, data);
    *label = static_cast<float>(ImageList::parse(record).label);
  }

  ListedImages options_;
  std::shared_ptr<const ImageList> list_;
  Transformer transformer_;
};

}  // namespace

std::unique_ptr<SampleMaker> listedImageSamples(const ListedImages& options, std::shared_ptr<const ImageList> list) {
  return std::make_unique<ListedImageSamples>(options, std::move(list));
}

}  // namespace crema::data
