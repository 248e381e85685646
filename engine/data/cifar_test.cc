// `crema convert_cifar`: the binary version of CIFAR-10 as databases.
#include "data/cifar.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "data/source.h"
#include "support/message_of.h"
#include "support/shared_data.h"

namespace crema::data {
namespace {

namespace fs = std::filesystem;
using test::messageOf;

TEST(CifarTool, ConvertsToBothDatabases) {
  test::TemporaryFolder folder;
  std::string batches[6];
  for (int b = 0; b < 6; ++b) {
    for (int i = 0; i < 3 + b; ++i) {
      batches[b] += static_cast<char>((b + i) % 10);
      for (int p = 0; p < 3072; ++p) batches[b] += static_cast<char>(b * 31 + i * 7 + p);
    }
    writeFileAtomically(folder.file(b < 5 ? fmt::format("data_batch_{}.bin", b + 1) : "test_batch.bin"), batches[b]);
  }
  for (const std::string backend : {"lmdb", "leveldb"}) {
    const CifarCounts n = convertCifar(folder.path(), folder.path(), backend);
    EXPECT_EQ(n.train, 25);
    EXPECT_EQ(n.test, 8);
    const auto db = backend == "lmdb" ? caffe::DataParameter::LMDB : caffe::DataParameter::LEVELDB;
    const auto train = openSource(db, folder.file("cifar10_train_" + backend));
    const Record r = train->read(3 + 4 + 2);  // record 2 of batch 3
    EXPECT_EQ(r.key, "00009");
    caffe::Datum d;
    ASSERT_TRUE(d.ParseFromArray(r.value.data(), static_cast<int>(r.value.size())));
    EXPECT_EQ(d.data(), batches[2].substr(2 * 3073 + 1, 3072));
    EXPECT_EQ(d.label(), 4);
    EXPECT_EQ(d.channels() * 10000 + d.height() * 100 + d.width(), 33232);
    EXPECT_EQ(openSource(db, folder.file("cifar10_test_" + backend))->read(7).key, "00007");
  }
  writeFileAtomically(folder.file("data_batch_4.bin"), "no multiple");
  const auto said = [&] { return messageOf([&] { convertCifar(folder.path(), folder.file(""), "lmdb"); }); };
  fs::remove_all(folder.file("cifar10_train_lmdb"));
  EXPECT_NE(said().find("no multiple of a record's 3073"), std::string::npos) << said();
  fs::remove(folder.file("data_batch_2.bin"));
  EXPECT_NE(said().find("there is no"), std::string::npos) << said();
}

}  // namespace
}  // namespace crema::data
