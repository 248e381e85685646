// HDF5Data on files that libhdf5 itself makes here.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <fstream>
#include <functional>
#include <numeric>
#include <set>
#include <sstream>

#include "base/file.h"
#include "base/mutex.h"
#include "base/random.h"
#include "layers/record_layer.h"
#include "model/hdf5_file.h"
#include "support/conformance.h"
#include "support/message_of.h"
#include "support/shared_data.h"

namespace crema::conformance {
namespace {

LAYER_CASES(HDF5Data) {
  const char* any = "type: 'HDF5Data' top: 'data' hdf5_data_param { source: 'no/list.txt' batch_size: 2 } ";
  s.bad(any, {}, "no/list.txt");
  s.bad(std::string(any) + "transform_param { scale: 2 }", {}, "does not transform");
  s.bad("type: 'HDF5Data' top: 'data' hdf5_data_param { source: 'list.txt' }", {},
        "batch_size must be given, positive");
  s.bad("type: 'HDF5Data' top: 'data' hdf5_data_param { batch_size: 2 }", {}, "names no `source`");
  s.bad(any, {{2}}, "bottom blob(s)");
}

// Row r of a dataset with `width` values a row: exact in every type below.
double value(int64_t row, int64_t column) { return static_cast<double>((row * 7 + column * 3) % 120); }

using How = std::function<void(hid_t created)>;
struct Set {
  std::string name;
  hid_t type;
  std::vector<hsize_t> dims;
  How how = {};
  std::function<double(int64_t row, int64_t column)> values = value;
};

void writeFile(const std::string& path, const std::vector<Set>& sets, int64_t firstRow = 0, hsize_t userBlock = 0,
               bool newest = false) {
  const MutexLock lock(model::hdf5Mutex());
  const hid_t creation = H5Pcreate(H5P_FILE_CREATE);
  H5Pset_userblock(creation, userBlock);
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (newest) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access);
  for (const Set& set : sets) {
    const auto rows = static_cast<int64_t>(set.dims.empty() ? 1 : set.dims[0]);
    const hid_t space = set.dims.empty()
                            ? H5Screate(H5S_SCALAR)
                            : H5Screate_simple(static_cast<int>(set.dims.size()), set.dims.data(), nullptr);
    const int64_t width = rows ? H5Sget_simple_extent_npoints(space) / rows : 0;
    std::vector<double> values;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < width; ++i) values.push_back(set.values(firstRow + r, i));
    const hid_t how = H5Pcreate(H5P_DATASET_CREATE);
    if (set.how) set.how(how);
    const hid_t id = H5Dcreate2(file, set.name.c_str(), set.type, space, H5P_DEFAULT, how, H5P_DEFAULT);
    if (H5Tget_class(set.type) != H5T_STRING)
      H5Dwrite(id, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(id), H5Pclose(how), H5Sclose(space);
  }
  H5Fclose(file), H5Pclose(creation), H5Pclose(access);
}

How chunks(std::vector<hsize_t> dims, bool packed = true) {
  return [=](hid_t how) {
    H5Pset_chunk(how, static_cast<int>(dims.size()), dims.data());
    if (packed) H5Pset_shuffle(how), H5Pset_deflate(how, 4), H5Pset_fletcher32(how);
  };
}

class Hdf5 : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return folder_.file(name); }
  std::string layer(const std::string& list, int batch, const std::string& more = "",
                    const std::string& tops = "data label") {
    std::string text = "type: 'HDF5Data' name: 'rows'";
    std::istringstream names(tops);
    for (std::string top; names >> top;) text += fmt::format(" top: '{}'", top);
    return text + fmt::format(" hdf5_data_param {{ source: '{}' batch_size: {} {} }}", file(list), batch, more);
  }
  // Writes a list of these files; returns the error of setting up a layer on it.
  std::string said(const std::vector<std::string>& files, const std::string& tops = "data label") {
    std::ofstream list(file("list.txt"));
    for (const auto& f : files) list << f << "\n";
    list.close();
    return refusal(layer("list.txt", 2, "", tops), {});
  }
  void expectSaid(const std::string& said, std::initializer_list<const char*> parts) {
    for (const char* part : parts) EXPECT_NE(said.find(part), std::string::npos) << said;
  }
  test::TemporaryFolder folder_;
};

Case described(const std::string& text) {
  Case c;
  c.description = text;
  return c;
}

std::vector<double> expected(int64_t step, int batch, int64_t rows, int64_t width) {
  std::vector<double> all;
  for (int64_t i = step * batch; i < (step + 1) * batch; ++i)
    for (int64_t k = 0; k < width; ++k) all.push_back(value(i % rows, k));
  return all;
}

TEST_F(Hdf5, RowsOfEveryTypeAndLayoutInOrder) {
  const std::vector<hid_t> types = {H5T_IEEE_F32LE, H5T_IEEE_F64BE, H5T_STD_I8LE,  H5T_STD_U8BE,
                                    H5T_STD_I16BE,  H5T_STD_U32LE,  H5T_STD_I64BE, H5T_IEEE_F32BE};
  const std::vector<How> layouts = {
      {}, chunks({3, 2, 1, 3}), chunks({1, 2, 2, 3}, false), chunks({11, 1, 2, 2}), [](hid_t how) {
        H5Pset_layout(how, H5D_COMPACT);
      }};
  std::string list;
  int64_t rows = 0;
  for (size_t t = 0; t < types.size(); ++t) {
    const hsize_t n = 3 + 4 * t;
    const How& how = layouts[t % layouts.size()];
    writeFile(file(fmt::format("{}.h5", t)),
              {{"data", types[t], {n, 2, 2, 3}, how}, {"label", types[types.size() - 1 - t], {n}}}, rows,
              t == 3 ? 512 : 0);
    list += fmt::format("{}{}.h5", t % 2 ? " " : "\n", t);  // any white space; paths relative to the list's folder
    rows += static_cast<int64_t>(n);
  }
  writeFileAtomically(file("list.txt"), list);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    Bench b(described(layer("list.txt", 7)), dtype);
    EXPECT_EQ(b.tops()[0]->shape().brief(), "7x2x2x3");
    EXPECT_EQ(b.tops()[1]->shape().brief(), "7");
    for (const int64_t step : {0, 1, 2, 5, 60, 3, 59}) {  // steps in any order, as after resuming; batches wrap
      b.run().step = step;
      b.forward();
      EXPECT_EQ(b.topData(0), expected(step, 7, rows, 12)) << step;
      EXPECT_EQ(b.topData(1), expected(step, 7, rows, 1)) << step;
    }
    EXPECT_NE(dynamic_cast<layers::RecordLayer&>(b.layer()).fingerprint().find(fmt::format("{} records", rows)),
              std::string::npos);
  }
}

// What Caffe's own HDF5DataLayerTest expects of its two files: 10 rows each; data n x 8 x 6 x 5 counts through a file,
// and the second file begins at its own count; label is 1 + the row's number, label2 is label + 1.
void expectCaffesRows(Bench&& b) {
  for (int step = 0; step < 8; ++step) {
    b.run().step = step;
    b.forward();
    const int inFile = step % 2 * 5, file = step / 2 % 2;
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(b.topData(1)[static_cast<size_t>(i)], 1 + inFile + i);
      EXPECT_EQ(b.topData(2)[static_cast<size_t>(i)], 2 + inFile + i);
    }
    for (int i = 0; i < 5 * 240; ++i)
      EXPECT_EQ(b.topData(0)[static_cast<size_t>(i)], inFile * 240 + i + file * 2400) << step << " " << i;
  }
}

TEST_F(Hdf5, FilesOfCaffesOwnTest) {
  const std::string tops = "data label label2";
  for (const int second : {0, 1}) {  // like Caffe's: float rows, the second file packed
    const How how = second ? chunks({5, 4, 3, 5}) : How{};
    const auto count = [=](int64_t r, int64_t k) { return static_cast<double>(r * 240 + k + second * 2400); };
    const auto label = [](int64_t r, int64_t) { return static_cast<double>(r + 1); };
    const auto label2 = [](int64_t r, int64_t) { return static_cast<double>(r + 2); };
    writeFile(file(fmt::format("{}.h5", second)), {{"data", H5T_IEEE_F32LE, {10, 8, 6, 5}, how, count},
                                                   {"label", H5T_IEEE_F32LE, {10, 1}, {}, label},
                                                   {"label2", H5T_IEEE_F32LE, {10, 1}, {}, label2}});
  }
  writeFileAtomically(file("list.txt"), "0.h5\n1.h5\n");
  expectCaffesRows(Bench(described(layer("list.txt", 5, "", tops)), DType::kFloat32));
  const auto one = test::sharedData("hdf5/sample_data.h5"), two = test::sharedData("hdf5/sample_data_2_gzip.h5");
  if (!one || !two) return;  // reported as missing by the helper
  writeFileAtomically(file("caffes.txt"), *one + "\n" + *two + "\n");
  expectCaffesRows(Bench(described(layer("caffes.txt", 5, "", tops)), DType::kFloat32));
}

TEST_F(Hdf5, ShuffleTakesEveryRowOnceAnEpochFileByFile) {
  const int rows[] = {5, 9, 1, 13};
  std::string list;
  int64_t all = 0;
  for (const int n : rows) {
    writeFile(file(fmt::format("{}.h5", n)), {{"data", H5T_IEEE_F32LE, {static_cast<hsize_t>(n), 2}}}, all);
    list += fmt::format("{}.h5\n", n), all += n;
  }
  ASSERT_EQ(all, 28);
  writeFileAtomically(file("list.txt"), list);
  const auto epoch = [&](Bench& b, int64_t e) {  // value(r, 0) is 7 r mod 120, and 7 * 103 = 1 mod 120
    std::vector<int> order;
    for (int64_t step = e * 7; step < (e + 1) * 7; ++step) {
      b.run().step = step;
      b.forward();
      for (size_t i = 0; i < 8; i += 2) order.push_back(static_cast<int>(b.topData(0)[i]) * 103 % 120);
    }
    return order;
  };
  Bench b(described(layer("list.txt", 4, "shuffle: true", "data")), DType::kFloat32);
  std::set<std::vector<int>> orders;
  for (int64_t e = 0; e < 6; ++e) {
    std::vector<int> order = epoch(b, e);
    EXPECT_EQ(epoch(b, e), order);
    orders.insert(order);
    int changes = 0;
    const auto fileOf = [](int row) { return row < 5 ? 0 : row < 14 ? 1 : row < 15 ? 2 : 3; };
    for (size_t i = 1; i < order.size(); ++i) changes += fileOf(order[i]) != fileOf(order[i - 1]);
    EXPECT_EQ(changes, 3) << "one file after the other";
    std::sort(order.begin(), order.end());
    std::vector<int> every(28);
    std::iota(every.begin(), every.end(), 0);
    EXPECT_EQ(order, every);
  }
  EXPECT_EQ(orders.size(), 6u) << "each epoch has an order of its own";
  Bench test(described(layer("list.txt", 4, "shuffle: true", "data")), DType::kFloat32, caffe::TEST);
  const std::vector<int> order = epoch(test, 1);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(Hdf5, EveryBadFileHasItsSentence) {
  const hid_t f = H5T_IEEE_F32LE;
  const std::string a = file("a.h5"), b = file("b.h5");
  writeFile(a, {{"data", f, {4, 3}}, {"label", f, {4}}});
  expectSaid(said({}), {"lists no files"});
  expectSaid(said({a, b}), {"there is no HDF5 file", "b.h5", "in HDF5 files of"});
  expectSaid(refusal(layer("a.h5", 2), {}), {"is an HDF5 file", "text file that lists"});
  writeFileAtomically(b, "no such format");
  expectSaid(said({b}), {"b.h5 cannot be read as HDF5 data"});
  writeFile(b, {{"data", f, {4, 3}}, {"labels", f, {4}}});
  expectSaid(said({a, b}), {"b.h5", "no dataset 'label'", "here data, labels"});
  writeFile(b, {{"data", f, {4, 3}}, {"label", f, {5}}});
  expectSaid(said({a, b}), {"b.h5", "'data' has 4 rows, 'label' has 5"});
  writeFile(b, {{"data", f, {}}, {"label", f, {}}});
  expectSaid(said({a, b}), {"b.h5", "dataset 'data' has 0 axes"});
  writeFile(b, {{"data", f, {4, 1, 3}}, {"label", f, {4}}});
  expectSaid(said({a, b}), {"a row of dataset 'data' is 3 in", "1x3 in", "b.h5"});
  writeFile(b, {{"data", f, {0, 3}, chunks({1, 3})}, {"label", f, {0}, chunks({1})}});
  expectSaid(said({a, b}), {"b.h5", "dataset 'data' has 0 rows"});
  writeFile(b, {{"data", H5T_C_S1, {4, 3}}, {"label", f, {4}}});
  expectSaid(said({b}), {"b.h5", "'data' holds neither integers nor"});
  {
    const MutexLock lock(model::hdf5Mutex());
    const hid_t open = H5Fopen(b.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    H5Gclose(H5Gcreate2(open, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Fclose(open);
  }
  expectSaid(said({b}, "group label"), {"b.h5", "'group' is no dataset"});
}

// Each of 600 damaged files gives an error that names it, or values; a crash of the child does not end this process.
TEST_F(Hdf5, DamageEndsInASentence) {
  const std::string path = file("d.h5");
  writeFileAtomically(file("list.txt"), "d.h5");
  const RandomStream r{RandomKey{}};
  uint64_t draw = 0;
#ifdef __SANITIZE_ADDRESS__
  const int rounds = 60;  // each starts a process, which takes a fifth of a second there
#else
  const int rounds = 300;
#endif
  int refused = 0, read = 0, died = 0;
  for (const bool newest : {false, true}) {
    writeFile(path, {{"data", H5T_IEEE_F32LE, {40, 5}, chunks({4, 5})}, {"label", H5T_STD_I32LE, {40}}}, 0, 0, newest);
    const std::string whole = readFile(path);
    for (int k = 0; k < rounds; ++k) {
      std::string bytes = whole;
      for (uint64_t n = 1 + r.below(draw++, 12); n; --n) {
        const uint64_t at = r.below(draw++, k % 2 ? bytes.size() : std::min<size_t>(2000, bytes.size()));
        bytes[at] = static_cast<char>(r.below(draw++, 256));
      }
      if (k % 10 == 0) bytes.resize(r.below(draw++, bytes.size()));
      std::ofstream(path, std::ios::binary) << bytes;
      const std::string m = refusal(layer("list.txt", 40), {});
      (m == "no error" ? read : refused)++;
      died += m.find("is damaged: libhdf5 ended with signal") != std::string::npos;
      EXPECT_TRUE(m == "no error" || m.find("d.h5") != std::string::npos || m.find("list.txt") != std::string::npos)
          << m;
    }
  }
  EXPECT_GT(refused, rounds / 3);
  EXPECT_GT(read, rounds / 15);
  std::cout << refused << " refused, of which " << died << " ended the child; " << read << " read\n";
}

}  // namespace
}  // namespace crema::conformance
