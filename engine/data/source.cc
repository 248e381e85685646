#include "data/source.h"

#include "base/error.h"
#include "base/file.h"
#include "data/leveldb_source.h"
#include "data/lmdb_pages.h"

namespace crema {

std::shared_ptr<const RecordSource> openSource(caffe::DataParameter::DB backend, const std::string& path) {
  if (path.empty()) invalid("the data layer names no `source`; give the path of its database");
  return backend == caffe::DataParameter::LEVELDB ? levelDbSource(path) : lmdbSource(path);
}

std::string fingerprintOf(const RecordSource& source) {
  std::string all = std::to_string(source.size());
  for (int64_t k = 0; k < 64; ++k) {
    const Record r = source.read((source.size() - 1) * k / 63);
    all += sha256Hex(r.key) + sha256Hex(r.value);
  }
  return fmt::format("{} records, fingerprint {}", source.size(), sha256Hex(all).substr(0, 12));
}

}  // namespace crema
