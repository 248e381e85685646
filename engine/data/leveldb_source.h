// A LevelDB of records: leveldb_source.cc.
#pragma once
#include <memory>
#include <string>

#include "data/source.h"

namespace crema::data {

std::shared_ptr<const RecordSource> levelDbSource(const std::string& path);

}  // namespace crema::data
