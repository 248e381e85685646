// Formats of records, images and rows: valid inputs, and functions that read damaged ones.
#pragma once
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/decode.h"
#include "data/file_bytes.h"
#include "data/hdf5_source.h"
#include "data/leveldb_source.h"
#include "data/lmdb_pages.h"
#include "data/lmdb_writer.h"
#include "data/record_writer.h"
#include "data/samples.h"
#include "data/window_file.h"
#include "model/hdf5_appender.h"

namespace crema::fuzz {

namespace fs = std::filesystem;
inline const std::string kSource = CREMA_SOURCE_DIR;

inline std::vector<std::string> filesOf(const std::string& folder, const std::string& ending) {
  std::vector<std::string> all;
  for (const auto& f : fs::directory_iterator(kSource + folder))
    if (f.path().string().ends_with(ending)) all.push_back(f.path());
  std::sort(all.begin(), all.end());  // a folder has no order
  for (auto& f : all) f = readFile(f);
  return all;
}

class OneRecord : public data::RecordSource {
 public:
  explicit OneRecord(const std::string& bytes) : bytes_(bytes) {}
  int64_t size() const override { return 1; }
  data::Record read(int64_t) const override { return {"0", bytes_}; }
  std::string describe() const override { return "a record"; }

 private:
  const std::string& bytes_;
};

inline void readDatum(const std::string& bytes) {
  data::ImageOptions o;
  o.transform.set_scale(0.5);
  const OneRecord source(bytes);
  const auto samples = data::datumSamples(o, true, source);
  if (samples->shape(0).count() > (1 << 24)) return;
  std::vector<float> image(static_cast<size_t>(samples->shape(0).count())), label(1);
  samples->make(source.read(0), {}, 0, {image.data(), label.data()});
}

inline void readLmdb(const std::string& bytes) {
  const data::MemoryBytes file(bytes);
  const data::LmdbIndex index = data::lmdbIndex(file, "fuzzed");
  for (int64_t i = 0; i < index.records(); ++i) data::lmdbRecord(file, index, i, "fuzzed");
}

inline void decode(const std::string& bytes) {
  data::Image image;
  std::string why;
  for (const data::ColourMode colour : {data::ColourMode::kAsIs, data::ColourMode::kGrey, data::ColourMode::kColour})
    if (!data::decodeImage(bytes, colour, &image, &why)) badData("{}", why);
}

inline std::vector<std::string> lmdbs(const std::string& folder) {
  std::vector<std::string> all;
  for (const size_t large : {size_t{0}, size_t{9000}}) {
    const std::string path = fmt::format("{}/lmdb{}", folder, large);
    data::LmdbWriter writer(path);
    for (int i = 0; i < 150; ++i)
      writer.put(fmt::format("{:08d}", i), std::string(i % 7 == 0 && large ? large : 100, 'v'));
    writer.finish();
    all.push_back(readFile(path + "/data.mdb"));
  }
  return all;
}

// A LevelDB of several files; an input is one of them, behind a byte that says which.
class LevelDbFiles {
 public:
  explicit LevelDbFiles(const std::string& folder) : path_(folder + "/leveldb") {
    const auto writer = data::makeRecordWriter(caffe::DataParameter::LEVELDB, path_);
    for (int i = 0; i < 300; ++i)
      writer->put(fmt::format("{:08d}", i),
                  std::string(static_cast<size_t>(10 + i % 90), static_cast<char>('a' + i % 26)));
    writer->finish();
    for (const auto& f : fs::directory_iterator(path_)) names_.push_back(f.path());
    std::sort(names_.begin(), names_.end());
    for (const auto& f : names_) whole_.push_back(readFile(f));
  }
  std::vector<std::string> seeds() const {
    std::vector<std::string> all;
    for (size_t i = 0; i < names_.size(); ++i) all.push_back(static_cast<char>(i) + whole_[i]);
    return all;
  }
  void read(const std::string& bytes) const {
    const size_t which = bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]) % names_.size();
    std::ofstream(names_[which], std::ios::binary) << bytes.substr(bytes.empty() ? 0 : 1);
    const auto restore = [&] { std::ofstream(names_[which], std::ios::binary) << whole_[which]; };
    try {
      const auto source = data::levelDbSource(path_);
      for (int64_t i = 0; i < source->size(); ++i) source->read(i);
    } catch (...) {
      restore();
      throw;
    }
    restore();
  }

 private:
  std::string path_;
  std::vector<std::string> names_, whole_;
};

// An HDF5 file of rows as HDF5Output writes it, for HDF5Data.
inline std::string rowsFile(const std::string& path) {
  const std::vector<float> values(40 * 6, 0.5f);
  {
    model::Hdf5Appender out(path);
    out.append({{"data", {40, 3, 2}, false, values.data()}, {"label", {40}, false, values.data()}});
  }
  return readFile(path);
}

inline void readHdf5Rows(const std::string& path, const std::string& list) {
  std::ofstream(list) << path;
  const data::Hdf5Data data = data::openHdf5Data(list, {"data", "label"}, false);
  for (int64_t i = 0; i < std::min<int64_t>(data.rows->size(), 100); ++i) data.rows->read(i);
}

inline void readWindows(const std::string& path) {
  data::WindowOptions o;
  o.param.set_source(path);
  const data::WindowFile file(o);
  for (int64_t i = 0; i < file.size(); ++i) {
    data::ImageWindow w;
    std::memcpy(&w, file.read(i).value.data(), sizeof w);
    for (const bool square : {false, true}) {
      try {
        data::placeWindow(w, 100, 120, 20, 2, square, i % 2 == 1);
      } catch (const Error&) {  // a window beside the image: the next may lie in it
      }
    }
  }
}

inline std::vector<std::string> datums() {
  std::vector<std::string> all;
  caffe::Datum d;
  d.set_channels(3), d.set_height(4), d.set_width(5), d.set_label(7);
  d.set_data(std::string(60, 'p'));
  all.push_back(d.SerializeAsString());
  d.clear_data();
  for (int i = 0; i < 60; ++i) d.add_float_data(static_cast<float>(i));
  all.push_back(d.SerializeAsString());
  for (const auto& image : filesOf("/tests/goldens/images", "g")) {
    caffe::Datum e;
    e.set_encoded(true), e.set_label(1), e.set_data(image);
    if (image.size() < 4000) all.push_back(e.SerializeAsString());
  }
  return all;
}

}  // namespace crema::fuzz
