// R-CNN's window files: images, and windows in them with class and overlap. Of each image
//
//   # number
//   path
//   channels height width
//   count
//   class overlap x1 y1 x2 y2        `count` times, bounds included, from 0
//
// in this order, separated by blanks or line ends; the path has a line of its own and may hold blanks. A window with
// overlap >= fg_threshold is foreground (class above 0), others with overlap < bg_threshold are background (class 0),
// the rest is not used. Number, channels, height and width are read and ignored, as in Caffe, where images are always
// colour.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/image_file.h"
#include "data/samples.h"
#include "data/source.h"

namespace crema::data {

struct ImageWindow {
  int32_t image, label, x1, y1, x2, y2;
};

struct WindowOptions {
  caffe::WindowDataParameter param;          // with source as a path that can be opened
  caffe::TransformationParameter transform;  // crop_size, mirror, mean_file or mean_value
  std::string folder;                        // where relative paths may also start
  float scale = 1;
  bool cache = false;  // keep all image files in memory, read at the start
};

// Records 0 .. foreground() - 1 are foreground windows, the others background: key the image's path, value an
// ImageWindow.
class WindowFile : public RecordSource {
 public:
  explicit WindowFile(const WindowOptions& options);  // throws kIo or kData, naming image and field
  int64_t size() const override { return static_cast<int64_t>(windows_.size()); }
  Record read(int64_t i) const override;
  std::string describe() const override { return "window file " + path_; }
  int64_t foreground() const { return foreground_; }
  Image image(const Record& record) const;  // colour
  std::string fileOf(const Record& record) const;

 private:
  std::string path_, root_, folder_;
  std::vector<std::string> images_, cache_;
  std::vector<ImageWindow> windows_;
  int64_t foreground_ = 0;
};

// How a window becomes a crop: these pixels of the image, resized to height x width, at (top, left) of the crop. For a
// mirrored crop left and right margins are swapped.
struct WindowPlace {
  int x1, y1, x2, y2, height, width, top, left;
};
// float arithmetic and half away from zero, as Caffe's. kData when no pixel of the window is in the image, or, where
// nothing is clipped (warp without context), when one is not.
WindowPlace placeWindow(const ImageWindow& window, int imageHeight, int imageWidth, int crop, int contextPad,
                        bool square, bool mirror);

// The record of item i of a batch: background first, then int(batch * fg_fraction) foreground windows, all drawn at
// random.
int64_t chooseWindow(const WindowFile& file, int batch, float fgFraction, const SampleRandom& random, int item);

// Tops data (3 x crop x crop, 0 where a window leaves its image) and label. The checks of what `options` says are here.
std::unique_ptr<SampleMaker> windowSamples(const WindowOptions& options, std::shared_ptr<const WindowFile> file);

}  // namespace crema::data
