// Blobs, their memory, and decoded pictures, which are handed out as memory too.
#include <algorithm>

#include "api/handles.h"
#include "data/decode.h"

namespace crema::api {

crema_blob* newBlob(Blob& blob, std::shared_ptr<Compute> compute, bool parameter,
                    std::shared_ptr<PlannedPasses> planned) {
  if (planned && planned->isOpen(blob)) planned.reset();
  return new crema_blob{blob.shared_from_this(), std::move(compute), parameter, std::move(planned)};
}

namespace {

Shape shapeOf(int axes, const int* dims) {
  if (axes < 0 || axes > 32) invalid("a blob has 0 to 32 axes, not {}", axes);
  return Shape(std::vector<int>(dims, dims + axes));
}

Compute::Hold holdOf(const crema_blob* blob) { return blob->compute ? blob->compute->holdBriefly() : Compute::Hold(); }

// Before the host looks at its values.
void endPlannedPasses(const crema_blob* blob) {
  if (!blob->planned || !blob->planned->planning()) return;
  if (blob->compute->inherited()) {
    if (blob->parameter || !blob->planned->owes()) return;
    invalid(
        "this blob was not looked at before the process was forked, so the pass left it no values; look at it there "
        "first");
  }
  const auto hold = blob->compute->hold();
  blob->planned->end();
}

}  // namespace
}  // namespace crema::api

using namespace crema;
using namespace crema::api;

int crema_blob_shape(const crema_blob* blob, int* axes, int dims[32]) {
  return guard([&] {
    const auto hold = api::holdOf(blob);
    const std::vector<int>& shape = blob->blob->shape().dims();
    *axes = static_cast<int>(shape.size());
    std::copy(shape.begin(), shape.end(), dims);
  });
}

int crema_blob_reshape(crema_blob* blob, int axes, const int* dims) {
  return guard([&] {
    const Shape shape = api::shapeOf(axes, dims);
    api::endPlannedPasses(blob);
    const auto hold = api::holdOf(blob);
    if (blob->parameter && shape.count() != blob->blob->count())
      invalid(
          "a parameter of {} values cannot become {}: its layer needs as many as it has; make a net of other layers",
          blob->blob->count(), shape.brief());
    blob->blob->reshape(shape);
  });
}

int crema_blob_values(crema_blob* blob, int diff, float** values, crema_memory** owner) {
  return guard([&] {
    if (!diff) api::endPlannedPasses(blob);
    const auto hold = api::holdOf(blob);
    Blob& b = *blob->blob;
    *values = diff ? b.mutableDiff<float>() : b.mutableData<float>();
    *owner = new crema_memory{diff ? b.diffMemory() : b.dataMemory()};
  });
}

void crema_blob_free(crema_blob* blob) {
  if (blob && blob->compute && blob->compute->inherited()) return;  // not freed: its net's threads are the parent's
  delete blob;
}
void crema_memory_free(crema_memory* memory) { delete memory; }

int crema_decode_image(const void* bytes, size_t size, int colour, int dims[3], const uint8_t** pixels,
                       crema_memory** owner) {
  return guard([&] {
    auto image = std::make_shared<data::Image>();
    std::string why;
    if (!data::decodeImage({static_cast<const char*>(bytes), size},
                           colour ? data::ColourMode::kColour : data::ColourMode::kGrey, image.get(), &why))
      badData("the image {}", why);
    dims[0] = image->height, dims[1] = image->width, dims[2] = image->channels;
    *pixels = image->bytes.data();
    *owner = new crema_memory{image};
  });
}
