// Files written by HDF5Output, read by libhdf5.
#include <gtest/gtest.h>
#include <hdf5.h>

#include <filesystem>

#include "base/file.h"
#include "base/mutex.h"
#include "model/hdf5_file.h"
#include "support/conformance.h"
#include "support/message_of.h"
#include "support/shared_data.h"

namespace crema::conformance {
namespace {

LAYER_CASES(HDF5Output) {
  s.bad("type: 'HDF5Output'", {{2, 3}, {2}}, "top");  // the test bench adds a top, and this layer takes none
}

// An HDF5Output layer with bottoms of its own.
class Output {
 public:
  Output(const std::string& path, DType dtype) : data_(Shape{2, 3}, dtype), label_(Shape{2}, dtype) {
    auto p = model::parseText<caffe::LayerParameter>(
        fmt::format("name: 'out' type: 'HDF5Output' hdf5_output_param {{ file_name: '{}' }}", path), "test");
    layers::LayerContext context;
    context.kernels = &kernels_, context.dtype = dtype, context.run = &run, context.data = &options;
    layer_ = layers::builtinLayers().make(p, context);
    layer_->setUp({&data_, &label_}, {});
  }
  void pass(int rows, int first, int width = 3) {
    data_.reshape(Shape{rows, width}), label_.reshape(Shape{rows});
    for (int i = 0; i < data_.count(); ++i) Bench::set(data_, i, first * 3 + i + 0.1);
    for (int i = 0; i < rows; ++i) Bench::set(label_, i, first + i);
    layer_->forward({&data_, &label_}, {});
  }
  layers::RunState run;
  layers::DataOptions options;

 private:
  kernels::Context kernels_{kernels::bestIsa(), 1};
  Blob data_, label_;
  std::unique_ptr<layers::Layer> layer_;
};

struct Contents {
  std::vector<hsize_t> dims;
  std::vector<double> values;
  size_t width = 0;
};
Contents contents(const std::string& path, const char* name) {
  const MutexLock lock(model::hdf5Mutex());
  const std::string bytes = readFile(path);  // the file as another process would read it
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(access, 1 << 16, 0);
  H5Pset_file_image(access, const_cast<char*>(bytes.data()), bytes.size());
  const hid_t file = H5Fopen("/dev/null/copy", H5F_ACC_RDONLY, access), set = H5Dopen2(file, name, H5P_DEFAULT),
              space = H5Dget_space(set), type = H5Dget_type(set);
  Contents c;
  c.width = H5Tget_size(type);
  c.dims.resize(static_cast<size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, c.dims.data(), nullptr);
  c.values.resize(static_cast<size_t>(H5Sget_simple_extent_npoints(space)));
  H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, c.values.data());
  H5Tclose(type), H5Sclose(space), H5Dclose(set), H5Fclose(file), H5Pclose(access);
  return c;
}

TEST(HDF5Output, AppendsEveryBatchAndTheFileIsWholeAfterEach) {
  const test::TemporaryFolder folder;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const std::string path = folder.file("out.h5");
    Output out(path, dtype);
    std::filesystem::remove(path);
    int rows = 0;
    for (const int batch : {2, 5, 1, 4}) {
      out.pass(batch, rows);
      rows += batch;
      const Contents data = contents(path, "data"), label = contents(path, "label");
      EXPECT_EQ(data.dims, (std::vector<hsize_t>{static_cast<hsize_t>(rows), 3}));
      EXPECT_EQ(label.dims, (std::vector<hsize_t>{static_cast<hsize_t>(rows)}));
      EXPECT_EQ(data.width, dtype == DType::kFloat64 ? 8u : 4u);
      for (int i = 0; i < rows * 3; ++i)
        EXPECT_EQ(data.values[static_cast<size_t>(i)],
                  dtype == DType::kFloat64 ? i + 0.1 : static_cast<float>(i + 0.1));
      for (int i = 0; i < rows; ++i) EXPECT_EQ(label.values[static_cast<size_t>(i)], i);
    }
    EXPECT_NE(test::messageOf([&] { out.pass(2, 0, 4); }).find("changed their shape"), std::string::npos);
    out.run.rank = 1, out.pass(3, 0);
    EXPECT_EQ(contents(path, "label").dims[0], 12u) << "another rank writes nothing";
    out.options.testWorkers = 3;
    EXPECT_NE(test::messageOf([&] { out.pass(2, 0); }).find("3 workers share out"), std::string::npos);
  }
}

TEST(HDF5Output, Refuses) {
  const test::TemporaryFolder folder;
  // Setting up alone, as `crema plan` does, creates no file.
  Output nowhere(folder.file("no/folder/out.h5"), DType::kFloat32);
  EXPECT_NE(test::messageOf([&] { nowhere.pass(2, 0); }).find("cannot create"), std::string::npos);
  Output one(folder.file("same.h5"), DType::kFloat32), two(folder.file("same.h5"), DType::kFloat32);
  one.pass(2, 0);
  EXPECT_NE(test::messageOf([&] { two.pass(2, 0); }).find("no other HDF5Output writing it"), std::string::npos);
  EXPECT_NE(test::messageOf([&] { Output("", DType::kFloat32); }).find("names no file_name"), std::string::npos);
}

TEST(HDF5Output, WhatItWroteDataReads) {
  const test::TemporaryFolder folder;
  {
    Output out(folder.file("o.h5"), DType::kFloat32);
    out.pass(4, 0), out.pass(6, 4);
  }
  writeFileAtomically(folder.file("list.txt"), "o.h5");
  Case c;
  c.description = fmt::format(
      "type: 'HDF5Data' name: 'rows' top: 'data' top: 'label' hdf5_data_param {{ source: '{}' batch_size: 10 }}",
      folder.file("list.txt"));
  Bench b(c, DType::kFloat32);
  b.forward();
  for (size_t i = 0; i < 30; ++i) EXPECT_EQ(b.topData(0)[i], static_cast<float>(static_cast<double>(i) + 0.1));
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(b.topData(1)[i], static_cast<double>(i));
}

}  // namespace
}  // namespace crema::conformance
