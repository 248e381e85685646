// Compared with libleveldb's own iterator: both must give the same records, whatever state the files are in.
#include <gtest/gtest.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <thread>

#include "base/error.h"
#include "data/idx.h"
#include "data/leveldb_format.h"
#include "data/lmdb_writer.h"
#include "support/leveldb.h"
#include "support/message_of.h"
#include "support/records.h"
#include "support/shared_data.h"

namespace crema::data {
namespace {

namespace fs = std::filesystem;
using namespace crema::test::level_db;
using test::messageOf;

// Values of a few bytes to several blocks of a log, half of them compressible; written over, removed, compacted in
// part, the rest in the log: all levels and shadowing of keys.
TEST(LevelDb, ShowsWhatLibleveldbShows) {
  for (const auto compression : {leveldb::kSnappyCompression, leveldb::kNoCompression}) {
    test::TemporaryFolder folder;
    const std::string path = folder.file("db");
    leveldb::Options options;
    options.compression = compression;
    options.write_buffer_size = 64 << 10, options.max_file_size = 1 << 20, options.block_size = 4096;
    Contents want;
    {
      Db db(path, options);
      const RandomStream r{RandomKey{}};
      for (uint64_t i = 0; i < 6000; ++i) {
        const uint64_t k = r.below(4 * i, 2500), size = r.below(4 * i + 1, 100) ? r.below(4 * i + 2, 900) : 100000;
        std::string value(size, static_cast<char>(k));
        for (size_t b = 0; i % 2 && b < size; ++b) value[b] = static_cast<char>(r.block(i << 20 | b)[0]);
        ASSERT_TRUE((i % 7 ? db->Put({}, key(k), value) : db->Delete({}, key(k))).ok());
        if (i == 3000) db->CompactRange(nullptr, nullptr);
      }
      leveldb::WriteBatch last;  // stays in the log, with a removal of what tables hold
      for (uint64_t k = 0; k < 40; ++k) last.Put(key(3000 + k), std::string(3000, 'z'));
      last.Delete(key(3005));
      ASSERT_TRUE(db->Write({}, &last).ok());
      want = db.contents();
    }
    EXPECT_GT(filesEndingIn(path, ".ldb"), 3);
    EXPECT_GE(filesEndingIn(path, ".log"), 1);
    const auto before = snapshot(path);
    const auto source = ours(path);
    EXPECT_EQ(all(*source), want);
    std::vector<std::thread> readers;  // any thread, any order
    for (int t = 0; t < 3; ++t)
      readers.emplace_back([&, t] {
        for (size_t i = 0; i < want.size(); ++i) {
          const size_t k = (i * 977 + static_cast<size_t>(t) * 31) % want.size();
          const Record r = source->read(static_cast<int64_t>(k));
          EXPECT_EQ(r.value, want[k].second) << k;
        }
      });
    for (auto& reader : readers) reader.join();
    EXPECT_TRUE(snapshot(path) == before);
    Db again(path, options);  // turns its log into a table; ours reads that too, and while libleveldb holds the lock
    again->CompactRange(nullptr, nullptr);  // what it compacts of itself is done then: files vanish meanwhile
    EXPECT_EQ(all(*ours(path)), want);
    EXPECT_EQ(again.contents(), want);
  }
}

TEST(LevelDb, WritesWhatLibleveldbReads) {
  test::TemporaryFolder folder;
  const std::string path = folder.file("db");
  Contents want;
  {
    const auto writer = makeRecordWriter(caffe::DataParameter::LEVELDB, path);
    for (int i = 0; i < 2500; ++i) {
      want.emplace_back(fmt::format("{:08d}", i), test::datum(1, 4, 4, i % 10, i).SerializeAsString());
      writer->put(want.back().first, want.back().second);
    }
    EXPECT_FALSE(fileExists(path));
    writer->finish();
    EXPECT_EQ(writer->written(), 2500);
  }
  EXPECT_EQ(all(*ours(path)), want);
  EXPECT_EQ(Db(path, {}).contents(), want);
  EXPECT_NE(messageOf([&] { (void)makeRecordWriter(caffe::DataParameter::LEVELDB, path); }).find("already"),
            std::string::npos);
  { makeRecordWriter(caffe::DataParameter::LEVELDB, folder.file("half"))->put("a", "b"); }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
  EXPECT_NE(messageOf([&] { parseBackend("rocks"); }).find("lmdb or leveldb"), std::string::npos);
}

TEST(LevelDb, AReadOnlyFolderIsEnough) {
  test::TemporaryFolder folder;
  const std::string path = folder.file("db");
  const auto writer = makeRecordWriter(caffe::DataParameter::LEVELDB, path);
  for (int i = 0; i < 10; ++i) writer->put(std::to_string(i), "v");
  writer->finish();
  fs::remove(path + "/LOCK");
  const auto before = snapshot(path);
  for (const auto& entry : fs::directory_iterator(path)) fs::permissions(entry.path(), fs::perms::owner_read);
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(ours(path)->size(), 10);
  fs::permissions(path, fs::perms::owner_all);
  EXPECT_TRUE(snapshot(path) == before);
}

TEST(LevelDb, EveryBadDatabaseHasItsSentence) {
  test::TemporaryFolder folder;
  const auto says = [](const std::string& path, const std::string& what) {
    const std::string said = messageOf([&] { ours(path); });
    EXPECT_NE(said.find(what), std::string::npos) << said;
  };
  says(folder.file("none"), "there is no LevelDB at");
  fs::create_directory(folder.file("empty"));
  says(folder.file("empty"), "holds no file CURRENT");
  LmdbWriter lmdb(folder.file("lmdb"));
  lmdb.put("a", "b");
  lmdb.finish();
  says(folder.file("lmdb"), "say `backend: LMDB`");
  const std::string path = folder.file("db");
  {
    Db db(path, {});
    says(path, "holds no records");
    for (int i = 0; i < 1000; ++i) db->Put({}, std::to_string(i), std::string(500, 'v'));
    db->CompactRange(nullptr, nullptr);
  }
  EXPECT_NE(messageOf([&] { openSource(caffe::DataParameter::LMDB, path); }).find("`backend: LEVELDB`"),
            std::string::npos);
  std::string table;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".ldb") table = entry.path();
  const std::string whole = readFile(table);
  fs::resize_file(table, whole.size() - 1);
  says(table.substr(0, table.rfind('/')),
       fmt::format("has {} bytes, the manifest says {}", whole.size() - 1, whole.size()));
  writeFileAtomically(table, std::string(whole.size(), 'A'));
  says(path, "does not end as a table of LevelDB");
  fs::rename(table, table.substr(0, table.size() - 4) + ".sst");  // the old name
  writeFileAtomically(table.substr(0, table.size() - 4) + ".sst", whole);
  EXPECT_EQ(ours(path)->size(), 1000);
  fs::remove(table.substr(0, table.size() - 4) + ".sst");
  says(path, "lacks the table");
  writeFileAtomically(path + "/CURRENT", "MANIFEST-999999\n");
  says(path, "lacks MANIFEST-999999");
  writeFileAtomically(path + "/CURRENT", "../elsewhere\n");
  says(path, "does not name a manifest");
}

TEST(LevelDb, ChecksumsAreCastagnolis) {  // RFC 3720, B.4
  EXPECT_EQ(ldb::crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(ldb::crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(ldb::crc32c("123456789"), 0xe3069283u);
}

// The same records in a LevelDB and, at least their first ones, in an LMDB.
void expectSameRecords(const std::string& levelDb, const std::string& lmdb, int64_t records) {
  const auto source = ours(levelDb), witness = openSource(caffe::DataParameter::LMDB, lmdb);
  ASSERT_EQ(source->size(), records);
  ASSERT_GT(witness->size(), 0);
  for (int64_t i = 0; i < witness->size(); ++i) {
    EXPECT_EQ(source->read(i).key, witness->read(i).key);
    EXPECT_EQ(source->read(i).value, witness->read(i).value);
  }
}

TEST(LevelDb, HoldsWhatTheLmdbHolds) {
  test::TemporaryFolder folder;
  for (const std::string backend : {"lmdb", "leveldb"}) {
    const auto writer = makeRecordWriter(parseBackend(backend), folder.file(backend));
    for (int i = 0; i < 1500; ++i)
      writer->put(fmt::format("{:08d}", i), test::datum(1, 28, 28, i % 10, i).SerializeAsString());
    writer->finish();
  }
  expectSameRecords(folder.file("leveldb"), folder.file("lmdb"), 1500);
  // What Caffe's convert_mnist_data wrote: tables without compression, manifest number 497.
  const auto caffes = test::sharedData("mnist/leveldb/mnist-test-leveldb");
  const auto first1000 = test::sharedData("mnist/mnist_test_first1000_lmdb");
  if (caffes && first1000) expectSameRecords(*caffes, *first1000, 10000);
}

}  // namespace
}  // namespace crema::data
