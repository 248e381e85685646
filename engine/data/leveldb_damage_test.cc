// LevelDBs that were cut off, damaged, or made to deceive.
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/random.h"
#include "data/leveldb_format.h"
#include "support/leveldb.h"
#include "support/shared_data.h"

namespace crema::data {
namespace {

namespace fs = std::filesystem;
using namespace crema::test::level_db;

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

}  // namespace
}  // namespace crema::data
