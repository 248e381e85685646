// Lists of image files: a line is `path label`, the label a whole number behind the last blank; the path may hold
// blanks. Empty lines are passed over; lines may end in CR LF.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/image_file.h"
#include "data/samples.h"
#include "data/source.h"

namespace crema::data {

struct ListedImage {
  std::string_view path;
  int label = 0;
};

// Record i is line (i + skip) mod n of the n lines that are not empty: key the path, value the line. Memory: the text,
// and 24 bytes per line.
class ImageList : public RecordSource {
 public:
  explicit ImageList(const std::string& path);  // throws kIo, or kData with the number of a malformed line
  int64_t size() const override { return static_cast<int64_t>(lines_.size()); }
  Record read(int64_t i) const override;
  std::string describe() const override { return "image list " + path_; }
  void rotate(int64_t skip) { skip_ = skip; }
  ListedImage at(int64_t i) const;
  static ListedImage parse(const Record& record);
  int64_t lineOf(const Record& record) const;  // from 1, empty lines counted

 private:
  struct Line {
    size_t at;
    uint32_t path, whole;  // bytes
    int64_t number;
  };
  Line parseLine(size_t at, std::string_view line, int64_t number) const;

  std::string path_, text_;
  std::vector<Line> lines_;
  int64_t skip_ = 0;
};

struct ListedImages {
  caffe::TransformationParameter transform;
  caffe::Phase phase = caffe::TEST;
  std::string folder;  // where relative paths may also start
  std::string root;    // prefix of every path
  ImageReading reading;
  bool varies = false;  // images may differ in shape: neither a size nor a crop is set
};
// The path of a listed image on this machine.
std::string fileOf(const ListedImages& options, const Record& record);
// Tops data and label. The first image of the list gives the shape.
std::unique_ptr<SampleMaker> listedImageSamples(const ListedImages& options, std::shared_ptr<const ImageList> list);

}  // namespace crema::data
