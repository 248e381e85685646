// XXH3 of 64 bits of a file's bytes, in pieces of 4 MiB, so that the file is never in memory as a whole. ioError.
#pragma once
#include <cstdint>
#include <string>

namespace crema {

uint64_t fileSum(const std::string& path, uint64_t seed = 0);

}  // namespace crema
