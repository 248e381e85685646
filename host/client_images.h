// Requests of `crema engine` on images: decode, resize, transform.
#pragma once
#include "engine.pb.h"

namespace crema::host {

void decode(const engine::Decode& request, engine::Image* out);
void resize(const engine::Resize& request, engine::Image* out);
void transform(const engine::Transform& request, engine::Blob* out);

}  // namespace crema::host
