// Sets of images: from a list of files to a database of Datum records, and their mean.
#pragma once
#include <string>

#include "caffe.pb.h"
#include "data/image_list.h"
#include "data/source.h"

namespace crema::data {

struct ImagesetOptions {
  std::string root, list, database;
  caffe::DataParameter::DB backend = caffe::DataParameter::LMDB;
  bool grey = false, shuffle = false, checkSize = false, encoded = false;
  std::string encodeType;  // "png", "jpg"; given, it implies encoded; empty: as the file's name ends
  int height = 0, width = 0;
  uint64_t seed = 1;  // of the order of shuffle
};
// Key `%08d_path`: the number, from 0, of the line, or the place in the shuffled order. Files that are no image are
// named in the log and left out. An encoded record is its file's own bytes where these need no change. Returns how many
// records were written.
int64_t convertImageset(const ImagesetOptions& options);

// The mean of records of one size, in Caffe's form (num 1). Sums are exact (double; Caffe's float sums round from 2^24
// on), so it is the mean rounded once.
caffe::BlobProto meanOf(const RecordSource& source);

}  // namespace crema::data
