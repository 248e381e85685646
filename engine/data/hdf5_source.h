// HDF5Data's records: the rows of its files, numbered through in the order of the list.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/samples.h"
#include "data/source.h"

namespace crema::data {

struct Hdf5Data {
  std::shared_ptr<const RecordSource> rows;    // a record's value: its floats, one dataset's after the other's
  std::shared_ptr<const SampleMaker> samples;  // makes one top of each dataset
  std::vector<int64_t> firstOfFile;            // number of each file's first row
};

// list: a text file of paths between white space, relative to the working folder or, where the file is not there, to
// the list's. oneByOne: rows will be read in random order. Every file is opened once; few rows are in memory at a time.
Hdf5Data openHdf5Data(const std::string& list, const std::vector<std::string>& datasets, bool oneByOne);

}  // namespace crema::data
