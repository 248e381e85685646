#include "data/source.h"

#include "base/error.h"
#include "data/leveldb_source.h"
#include "data/lmdb_pages.h"

namespace crema::data {

std::shared_ptr<const RecordSource> openSource(caffe::DataParameter::DB backend, const std::string& path) {
  if (path.empty()) invalid("the data layer names no `source`; give the path of its database");
  return backend == caffe::DataParameter::LEVELDB ? levelDbSource(path) : lmdbSource(path);
}

}  // namespace crema::data
