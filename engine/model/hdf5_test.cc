// Wrong and damaged HDF5 files. Good ones: engine/solver/hdf5_run_test.cc.
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <map>

#include "base/child.h"
#include "base/error.h"
#include "base/file.h"
#include "base/mutex.h"
#include "base/random.h"
#include "model/hdf5_file.h"
#include "model/hdf5_model.h"
#include "model/trained.h"
#include "support/message_of.h"
#include "support/shared_data.h"

namespace crema::model {
namespace {

using test::messageOf;

const std::string kGolden = CREMA_SOURCE_DIR "/tests/goldens/caffe_snapshots/tiny_iter_2";

class Files : public testing::Test {
 protected:
  // The file that `fill` makes with libhdf5 itself.
  std::string make(const std::function<void(hid_t file)>& fill) {
    const std::string path = folder_.file("made.h5");
    const MutexLock lock(hdf5Mutex());
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    fill(file);
    H5Fclose(file);
    return path;
  }
  // A model with one dataset data/conv/0 of this type and shape.
  std::string model(hid_t type, std::vector<hsize_t> dims, const std::string& name = "0",
                    const std::function<void(hid_t)>& how = {}, bool write = true) {
    return make([&](hid_t file) {
      H5Gclose(H5Gcreate2(file, "data", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      H5Gclose(H5Gcreate2(file, "data/conv", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
      const hid_t space = H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
                  created = H5Pcreate(H5P_DATASET_CREATE);
      if (how) how(created);
      const hid_t set = H5Dcreate2(file, ("data/conv/" + name).c_str(), type, space, H5P_DEFAULT, created, H5P_DEFAULT);
      const std::vector<char> zeros(1 << 20);
      if (write) H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros.data());
      H5Dclose(set), H5Pclose(created), H5Sclose(space);
    });
  }
  static void expectSaid(const std::string& path, const std::string& cause) {
    const std::string m = messageOf([&] { readTrained(path); });
    EXPECT_NE(m.find(cause), std::string::npos) << m;
    EXPECT_NE(m.find(path), std::string::npos) << m;
  }
  test::TemporaryFolder folder_;
};

TEST_F(Files, WhatCaffeDoesNotWriteIsNamed) {
  expectSaid(model(H5T_NATIVE_INT, {3}), "dataset 'data/conv/0' does not hold float or double values");
  expectSaid(model(H5T_C_S1, {3}), "does not hold float or double values");
  expectSaid(model(H5T_NATIVE_FLOAT, {3}, "weight"), "'data/conv/weight', Caffe numbers the blobs");
  expectSaid(model(H5T_NATIVE_FLOAT, {1000000, 1000000}, "0", {}, false), "claims more than 2147483647 values");
  expectSaid(model(H5T_NATIVE_FLOAT, {1000, 1000, 100}, "0", {}, false), "claims 400000000 bytes, 0 are stored");
  expectSaid(model(
                 H5T_NATIVE_FLOAT, {3}, "0", [&](hid_t how) { H5Pset_external(how, "/etc/hostname", 0, 12); }, false),
             "keeps its values in another file");
  expectSaid(
      make([](hid_t file) { H5Gclose(H5Gcreate2(file, "model_weights", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)); }),
      "no group 'data' (but model_weights)");
  expectSaid(make([](hid_t file) { H5Gclose(H5Gcreate2(file, "data", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)); }),
             "holds no layers");
  expectSaid(make([](hid_t file) {
               H5Gclose(H5Gcreate2(file, "data", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
               H5Lcreate_external("/etc/passwd", "/", file, "data/conv", H5P_DEFAULT, H5P_DEFAULT);
             }),
             "'data/conv' is a link to somewhere else");
  expectSaid(make([](hid_t file) {
               H5Gclose(H5Gcreate2(file, "data", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
               H5Lcreate_hard(file, "data", file, "data/again", H5P_DEFAULT, H5P_DEFAULT);
             }),
             "nests more than 32 groups");
}

TEST_F(Files, OtherWritersOfTheSameLayoutAreRead) {
  const auto deflated = [](hid_t how) {
    const hsize_t chunk = 50;
    H5Pset_chunk(how, 1, &chunk), H5Pset_deflate(how, 9);
  };
  const Trained packed = readTrained(model(H5T_NATIVE_FLOAT, {1000}, "0", deflated));
  EXPECT_EQ(packed.net.layer(0).blobs(0).data_size(), 1000);
  const Trained wide = readTrained(model(H5T_IEEE_F64BE, {2, 3}, "1"));
  EXPECT_TRUE(isAbsent(wide.net.layer(0).blobs(0)));
  EXPECT_EQ(wide.net.layer(0).blobs(1).double_data_size(), 6);
}

TEST_F(Files, SlashesNestGroups) {
  caffe::NetParameter net;
  for (const char* name : {"inception/conv", "inception", "top"}) {
    auto* layer = net.add_layer();
    layer->set_name(name);
    auto* blob = layer->add_blobs();
    blob->mutable_shape()->add_dim(1), blob->add_data(static_cast<float>(net.layer_size()));
  }
  const std::string path = folder_.file("m.h5");
  writeModel(path, net, caffe::SolverParameter::HDF5);
  std::map<std::string, float> found;
  const Trained read = readTrained(path);  // the net must outlive the loop
  for (const auto& layer : read.net.layer()) found[layer.name()] = layer.blobs(0).data(0);
  EXPECT_EQ(found, (std::map<std::string, float>{{"inception/conv", 1}, {"inception", 2}, {"top", 3}}));
  for (const char* bad : {"", "/a", "a/", "a//b", ".", "a/./b", "top", "top/0"})
    EXPECT_THROW(checkHdf5Layers({{"top", 1}, {bad, 0}}), Error) << bad;
}

TEST_F(Files, EveryTruncationIsAnError) {
  for (const char* kind : {".caffemodel.h5", ".solverstate.h5"}) {
    const std::string whole = readFile(kGolden + kind), path = folder_.file("cut.h5");
    for (size_t size = 0; size < whole.size(); size += 317) {
      writeFileAtomically(path, whole.substr(0, size));
      const bool state = std::string(kind)[1] == 's';
      const std::string m = messageOf([&] { state ? (void)readState(path) : (void)readTrained(path); });
      EXPECT_NE(m.find(path), std::string::npos) << size << ": " << m;
    }
  }
}

// CREMA_MUTATIONS=10000 repeats the measurement whose figures are in trained.h.
class Damaged : public Files {
 protected:
  static std::string mutate(std::string bytes, const RandomStream& r, uint64_t* drawn) {
    static const unsigned char interesting[] = {0, 1, 2, 0x7f, 0x80, 0xfe, 0xff};
    for (uint64_t changes = 1 + r.below((*drawn)++, 6); changes > 0; --changes) {
      // A byte that is not zero: most of such a file is zeros that are never read.
      size_t at = r.below((*drawn)++, bytes.size());
      for (size_t tries = 0; bytes[at] == 0 && tries < 200; ++tries) at = r.below((*drawn)++, bytes.size());
      for (uint64_t length = 1 + r.below((*drawn)++, 3); length > 0 && at < bytes.size(); --length, ++at)
        bytes[at] =
            static_cast<char>(r.below((*drawn)++, 2) ? interesting[r.below((*drawn)++, 7)] : r.below((*drawn)++, 256));
    }
    return bytes;
  }
  // The newest layout and filters, as h5py can write them.
  std::string modern() {
    const std::string path = folder_.file("modern.h5");
    const MutexLock lock(hdf5Mutex());
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS), created = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    const hsize_t chunk = 16, count = 64;
    H5Pset_chunk(created, 1, &chunk), H5Pset_shuffle(created), H5Pset_deflate(created, 9), H5Pset_fletcher32(created);
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access),
                space = H5Screate_simple(1, &count, nullptr), links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    const std::vector<float> values(count, 1.5f);
    for (int i = 0; i < 12; ++i) {  // enough for a dense group
      const hid_t set = H5Dcreate2(file, fmt::format("data/layer{}/0", i).c_str(), H5T_NATIVE_FLOAT, space, links,
                                   created, H5P_DEFAULT);
      H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
      H5Dclose(set);
    }
    H5Pclose(links), H5Sclose(space), H5Fclose(file), H5Pclose(created), H5Pclose(access);
    return readFile(path);
  }
};

TEST_F(Damaged, FilesEndInErrorsNotInThisProcess) {
  const char* many = std::getenv("CREMA_MUTATIONS");
  const int rounds = many ? std::atoi(many) : 300;
  const std::string seeds[] = {readFile(kGolden + ".caffemodel.h5"), readFile(kGolden + ".solverstate.h5"), modern()};
  const std::string path = folder_.file("damaged.h5");
  writeFileAtomically(path, seeds[2]);
  ASSERT_EQ(readTrained(path).net.layer_size(), 12);
  const RandomStream r{RandomKey{}};
  uint64_t drawn = 0;
  std::map<std::string, int> ends;
  for (int round = 0; round < rounds; ++round) {
    const int seed = round % 3;
    std::ofstream(path, std::ios::binary) << mutate(seeds[seed], r, &drawn);
    const std::string m = messageOf([&] { seed == 1 ? (void)readState(path) : (void)readTrained(path); });
    const size_t at = m.find("libhdf5 ended"), cut = m.find(" while reading");
    const bool apart = cut != std::string::npos && m.find("is damaged: libhdf5 ") != std::string::npos;
    ++ends[fmt::format("{}: {}", seed == 2 ? "new layout" : "Caffe's layout",
                       m == "no error" ? "read"
                       : !apart        ? "refused"
                                       : m.substr(std::min(at, cut), cut - std::min(at, cut)))];
    EXPECT_TRUE(m == "no error" || m.find(path) != std::string::npos) << m;
  }
  for (const auto& [end, times] : ends) std::cout << times << " of " << rounds << ": " << end << "\n";
  EXPECT_GT(ends["Caffe's layout: refused"], 0);
  EXPECT_GT(ends["Caffe's layout: read"], 0) << "a changed weight is still a weight";
  EXPECT_GT(ends["new layout: refused"], 0);
}

TEST(Child, ReturnsWhatItReturnsAndReportsHowItDied) {
  const ChildLimits limits{120, int64_t{1} << 30}, hasty{0.5, int64_t{1} << 30};
  const std::string large(10 << 20, 'x');
  EXPECT_TRUE(inChild(limits, [&] { return large; }).bytes == large);
  EXPECT_EQ(inChild(limits, [] { return std::string(); }).died, "");
  EXPECT_NE(messageOf([&] { (void)inChild(limits, []() -> std::string { badData("no {}", 7); }); }).find("no 7"),
            std::string::npos);
  const auto killed = inChild(limits, []() -> std::string { return kill(getpid(), SIGKILL), ""; });
  EXPECT_EQ(killed.died, "ended with signal 9 (Killed)");
  EXPECT_EQ(inChild(limits, []() -> std::string { _exit(4); }).died, "ended with code 4");
  EXPECT_EQ(inChild(hasty, []() -> std::string { return pause(), ""; }).died, "did not end within 0.5 seconds");
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
}

}  // namespace
}  // namespace crema::model
