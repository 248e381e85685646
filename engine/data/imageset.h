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
  std::string encodeType;  // "png", "jpg"; implies `encoded`; empty: by the file's extension
  int height = 0, width = 0;
  uint64_t seed = 1;  // for shuffle
};
// Keys are `%08d_path`, with the line's number from 0, or its place in the shuffled order. Files that are no image are
// logged and left out. An encoded record holds the file's own bytes where these need no change. Returns the number of
// records.
int64_t convertImageset(const ImagesetOptions& options);

// The mean of records of one size, in Caffe's form (num 1). Sums are exact (double; Caffe's float sums round from 2^24
// on), so the result is the exact mean, rounded once.
caffe::BlobProto meanOf(const RecordSource& source);

}  // namespace crema::data
