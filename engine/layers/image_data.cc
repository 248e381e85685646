// ImageData: image files and labels from a list. Tops data and label, N.
//
// image_data_param{source, batch_size, shuffle, rand_skip, new_height, new_width, is_color, root_folder};
// transform_param: data/transformer.h; data_param{prefetch}. A line of the list: data/image_list.h. root_folder is a
// prefix of every path. new_height x new_width: bilinear, both or none. With batch_size 1, without these and without
// crop_size, each batch has its image's shape. Images are sharded over ranks in blocks as records are (data/shard.h);
// shuffle: another order in every epoch, the first included, in both phases. rand_skip: the list starts at a random
// line below it. Both depend on the seed only, so a run resumes exactly and the number of workers changes nothing. A
// missing or damaged file ends the run with its name and line, as Caffe's CHECK does.
#include <filesystem>

#include "base/file.h"
#include "base/file_sum.h"
#include "data/image_list.h"
#include "layers/builtin.h"
#include "layers/record_layer.h"

namespace crema::layers {
namespace {

class ImageData : public RecordLayer {
 public:
  using RecordLayer::RecordLayer;
  Arity arity() const override { return {0, 0, 2, 2}; }

 protected:
  void configure(const Blobs&, const Blobs& top) override {
    const auto& p = param_.image_data_param();
    const DataOptions& o = *context().data;
    setBatch(p.batch_size());
    if ((p.new_height() == 0) != (p.new_width() == 0))
      invalid("Current implementation requires new_height and new_width to be set at the same time. ({} and {})",
              p.new_height(), p.new_width());
    constexpr uint32_t kMostSide = 1 << 16;
    if (p.new_height() > kMostSide || p.new_width() > kMostSide)
      invalid("new_height {} and new_width {}: at most {}", p.new_height(), p.new_width(), kMostSide);
    auto list = std::make_shared<data::ImageList>(
        sourcePath(p.source(), "image_data_param names no `source`; give the list of images"));
    if (o.use != PassUse::kScoring) list->rotate(skip(list->size()));
    images_.transform = param_.transform_param();
    images_.phase = context().phase;
    images_.folder = o.folder, images_.root = p.root_folder();
    images_.reading = {p.is_color() ? data::ColourMode::kColour : data::ColourMode::kGrey,
                       static_cast<int>(p.new_height()), static_cast<int>(p.new_width())};
    images_.varies = batch_ == 1 && !p.new_height() && !images_.transform.crop_size();
    maker_.samples = data::listedImageSamples(images_, list);
    maker_.source = list;
    maker_.options.shuffle = p.shuffle() && o.use != PassUse::kScoring;
    begin(top);
  }

  // Includes the file's bytes, as the list does not show that a picture was replaced.
  Identity identity(const data::Record& record) const override {
    const Identity line = RecordLayer::identity(record);
    const std::string path = data::fileOf(images_, record);
    if (!fileExists(path)) return line;
    return {fileSum(path, ~line.sum), line.bytes + static_cast<int64_t>(std::filesystem::file_size(path))};
  }

 private:
  int64_t skip(int64_t lines) const {
    const int64_t limit = param_.image_data_param().rand_skip();
    if (limit == 0) return 0;
    if (limit > lines) invalid("Not enough points to skip: rand_skip {} for {} images", limit, lines);
    const data::SampleRandom random{context().run->seed, 0, 0, name()};
    return static_cast<int64_t>(random.stream(RandomPurpose::kSkip, "").below(0, static_cast<uint64_t>(limit)));
  }

  data::ListedImages images_;
};

}  // namespace

void addImageData(LayerRegistry& r) { r.add<ImageData>("ImageData", "image files that a list names"); }

}  // namespace crema::layers
