// Compared with libleveldb's own iterator: both must give the same records, whatever state the files are in.
#include <gtest/gtest.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "data/cifar.h"
#include "data/idx.h"
#include "data/leveldb_format.h"
#include "data/lmdb_writer.h"
#include "data/source.h"
#include "support/message_of.h"
#include "support/records.h"
#include "support/shared_data.h"

namespace crema::data {
namespace {

using test::messageOf;
using Contents = std::vector<std::pair<std::string, std::string>>;
namespace fs = std::filesystem;

std::shared_ptr<const RecordSource> ours(const std::string& path) {
  return openSource(caffe::DataParameter::LEVELDB, path);
}

Contents all(const RecordSource& source) {
  Contents found;
  for (int64_t i = 0; i < source.size(); ++i) {
    const Record r = source.read(i);
    found.emplace_back(r.key, r.value);
  }
  return found;
}

class Db {
 public:
  Db(const std::string& path, leveldb::Options options) {
    options.create_if_missing = true;
    leveldb::DB* db = nullptr;
    const auto status = leveldb::DB::Open(options, path, &db);
    if (!status.ok()) throw std::runtime_error(status.ToString());
    db_.reset(db);
  }
  leveldb::DB* operator->() { return db_.get(); }
  Contents contents() {
    Contents found;
    const std::unique_ptr<leveldb::Iterator> at(db_->NewIterator({}));
    for (at->SeekToFirst(); at->Valid(); at->Next()) found.emplace_back(at->key().ToString(), at->value().ToString());
    return found;
  }

 private:
  std::unique_ptr<leveldb::DB> db_;
};

int filesEndingIn(const std::string& folder, const std::string& end) {
  int n = 0;
  for (const auto& entry : fs::directory_iterator(folder))
    n += entry.path().extension() == end && fs::file_size(entry.path()) > 0;
  return n;
}

std::map<std::string, std::string> snapshot(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) files[entry.path().filename()] = readFile(entry.path());
  return files;
}

std::string key(uint64_t i) { return fmt::format("{:08d}_{}", i, std::string(i % 5, 'k')); }

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

// The log of a writer that was cut off: what was whole is there, as libleveldb has it.
TEST(LevelDb, ATornLogGivesWhatWasWhole) {
  test::TemporaryFolder folder;
  const std::string path = folder.file("db");
  {
    Db db(path, {});
    for (int i = 0; i < 100; ++i) db->Put({}, fmt::format("{:03d}", i), std::string(1000, static_cast<char>(i)));
  }
  std::string log;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".log") log = entry.path();
  const std::string whole = readFile(log);
  for (const size_t cut : {whole.size() - 1, size_t{40000}, size_t{32768 + 3}, size_t{1040}}) {
    fs::resize_file(log, cut);
    const fs::path copy = folder.file("copy");
    fs::copy(path, copy, fs::copy_options::recursive);
    EXPECT_EQ(all(*ours(path)), Db(copy, {}).contents()) << cut;
    fs::remove_all(copy);
    writeFileAtomically(log, whole);
  }
}

std::string mutated(std::string bytes, const RandomStream& r, uint64_t* draw) {
  for (uint64_t n = r.below((*draw)++, 4) + 1; n && !bytes.empty(); --n) {
    const uint64_t at = r.below((*draw)++, bytes.size());
    bytes[at] = static_cast<char>(r.below((*draw)++, 256));
  }
  if (r.below((*draw)++, 10) == 0) bytes.resize(r.below((*draw)++, bytes.size() + 1));
  return bytes;
}

// Each of 3,000 databases with changed or missing bytes gives an error, its own records, or, where a log is cut, fewer.
TEST(LevelDb, DamageIsFoundBeforeItIsUsed) {
  test::TemporaryFolder folder;
  const std::string path = folder.file("db");
  std::map<std::string, std::string> want;
  {
    leveldb::Options options;
    options.write_buffer_size = 64 << 10, options.block_size = 1024;
    Db db(path, options);
    for (int i = 0; i < 400; ++i)
      db->Put({}, key(static_cast<uint64_t>(i)), std::string(static_cast<size_t>(i % 300), 'v'));
    db->CompactRange(nullptr, nullptr);
    for (int i = 0; i < 50; ++i) db->Put({}, key(static_cast<uint64_t>(400 + i)), std::string(1100, 'w'));
    for (auto& [k, v] : db.contents()) want[k] = v;
  }
  const auto whole = snapshot(path);
  std::vector<std::string> names;
  for (const auto& [name, bytes] : whole)
    if (name != "LOG" && name != "LOG.old" && !bytes.empty()) names.push_back(name);
  ASSERT_GE(names.size(), 4u);  // CURRENT, manifest, log, tables
  const RandomStream r{RandomKey{}};
  uint64_t draw = 0;
  int refused = 0, read = 0;
  for (int k = 0; k < 3000; ++k) {
    const std::string& name = names[static_cast<size_t>(k) % names.size()];
    std::ofstream(path + "/" + name, std::ios::binary) << mutated(whole.at(name), r, &draw);
    try {
      const auto source = ours(path);
      const Contents found = all(*source);
      for (const auto& [recordKey, value] : found) ASSERT_EQ(want.at(recordKey), value) << name;
      if (found.size() != want.size()) {  // cut between two records: an older state, as for libleveldb
        fs::copy(path, folder.file("copy"), fs::copy_options::recursive);
        EXPECT_EQ(Db(folder.file("copy"), {}).contents(), found) << name;
        fs::remove_all(folder.file("copy"));
      }
      ++read;
    } catch (const Error& e) {
      EXPECT_TRUE(e.kind() == ErrorKind::kData || e.kind() == ErrorKind::kIo) << e.what();
      ++refused;
    }
    std::ofstream(path + "/" + name, std::ios::binary) << whole.at(name);
  }
  EXPECT_GT(refused, 2000);
  EXPECT_GT(read, 10);
  EXPECT_EQ(ours(path)->size(), static_cast<int64_t>(want.size()));
}

// Blocks and logs whose checksums are right all the same, as someone could make them: every length and offset in them
// is checked too.
TEST(LevelDb, ARightChecksumIsNotTrusted) {
  const RandomStream r{RandomKey{}};
  uint64_t draw = 0;
  std::string plain;
  for (int i = 0; i < 40; ++i) {
    const std::string own = fmt::format("{:04d}", i) + std::string(8, '\1');
    plain += std::string{'\0', static_cast<char>(own.size()), '\5'} + own + "value";
  }
  plain += std::string(4, '\0') + std::string("\1\0\0\0", 4);
  const auto sealed = [](std::string bytes, char compression) {
    bytes += compression;
    const uint32_t crc = ldb::masked(ldb::crc32c(bytes));
    return bytes.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  };
  EXPECT_EQ(ldb::decodeBlock(sealed(plain, 0), "t").entries.size(), 40u);
  int refused = 0;
  for (int k = 0; k < 20000; ++k) {
    const bool snappy = k % 4 == 0;
    const std::string bytes = snappy ? mutated(
                                           "\xc8\x01\x04"
                                           "ab\xfe\x02\x00\xfe\x02\x00\xfe\x02\x00\xc2\x02\x00",
                                           r, &draw)
                                     : mutated(plain, r, &draw);
    try {
      const auto block = ldb::decodeBlock(sealed(bytes, snappy), "t");
      for (const auto& e : block.entries)
        ASSERT_LE(block.value(e).size() + block.key(e).size(), block.bytes.size() + block.keys.size());
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kData);
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);
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
