// Bytes that nobody can foresee, from the system: tokens, nonces, seeds that are drawn. What a model is computed from are
// the numbers of base/random.h.
#pragma once
#include <cstddef>
#include <string>

namespace crema {

std::string randomBytes(size_t count);

}  // namespace crema
