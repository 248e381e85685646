// What `crema engine` does with pictures: data/decode.h, data/resize.h and data/transformer.h as requests.
#pragma once
#include "engine.pb.h"

namespace crema::host {

void decode(const engine::Decode& request, engine::Image* out);
void resize(const engine::Resize& request, engine::Image* out);
void transform(const engine::Transform& request, engine::Blob* out);

}  // namespace crema::host
