#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "data/idx.h"
#include "data/lmdb_pages.h"
#include "data/lmdb_writer.h"
#include "data/shard.h"
#include "data/source.h"
#include "data/transformer.h"
#include "model/proto_io.h"
#include "support/message_of.h"
#include "support/records.h"
#include "support/shared_data.h"

namespace crema::data {
namespace {

using test::datum;
using test::messageOf;

void writeRecords(const std::string& path, int count) {
  LmdbWriter writer(path);
  for (int i = 0; i < count; ++i) writer.put(fmt::format("{:08d}", i), datum(1, 2, 2, i % 10, i).SerializeAsString());
  writer.finish();
}

std::shared_ptr<const RecordSource> lmdb(const std::string& path) {
  return openSource(caffe::DataParameter::LMDB, path);
}

TEST(Lmdb, WritesAndReadsBack) {
  test::TemporaryFolder folder;
  writeRecords(folder.file("db"), 2500);
  const auto source = lmdb(folder.file("db"));
  ASSERT_EQ(source->size(), 2500);
  EXPECT_EQ(source->read(1234).key, "00001234");
  EXPECT_EQ(source->read(1234).value, datum(1, 2, 2, 4, 1234).SerializeAsString());
  EXPECT_EQ(lmdb(folder.file("db/data.mdb"))->size(), 2500);  // the file itself is accepted too
  EXPECT_NE(messageOf([&] { LmdbWriter again(folder.file("db")); }).find("already"), std::string::npos);
}

TEST(Lmdb, MapGrows) {
  test::TemporaryFolder folder;
  LmdbWriter writer(folder.file("db"));
  const std::string big(100000, 'x');
  for (int i = 0; i < 1500; ++i) writer.put(fmt::format("{:08d}", i), big);  // 150 MB, twice the first map
  writer.finish();
  EXPECT_EQ(lmdb(folder.file("db"))->size(), 1500);
}

TEST(Lmdb, EveryBadDatabaseHasItsSentence) {
  test::TemporaryFolder folder;
  EXPECT_NE(messageOf([&] { lmdb(folder.file("none")); }).find("there is no LMDB at"), std::string::npos);
  std::filesystem::create_directory(folder.file("empty"));
  EXPECT_NE(messageOf([&] { lmdb(folder.file("empty")); }).find("holds no data.mdb"), std::string::npos);
  writeRecords(folder.file("db"), 3000);
  std::filesystem::resize_file(folder.file("db/data.mdb"), 40960);
  EXPECT_NE(messageOf([&] { lmdb(folder.file("db")); }).find("is truncated"), std::string::npos);
  std::filesystem::resize_file(folder.file("db/data.mdb"), 100);
  EXPECT_NE(messageOf([&] { lmdb(folder.file("db")); }).find("is no LMDB"), std::string::npos);
  writeFileAtomically(folder.file("db/data.mdb"), std::string(20000, 'A'));
  EXPECT_NE(messageOf([&] { lmdb(folder.file("db")); }).find("is no LMDB"), std::string::npos);
  EXPECT_NE(messageOf([&] { openSource(caffe::DataParameter::LEVELDB, folder.file("db")); }).find("backend: LMDB"),
            std::string::npos);
  {
    LmdbWriter interrupted(folder.file("half"));
    for (int i = 0; i < 1500; ++i) interrupted.put(std::to_string(i), "b");
    EXPECT_FALSE(isDirectory(folder.file("half")));
  }
  EXPECT_NE(messageOf([&] { lmdb(folder.file("half")); }).find("there is no LMDB"), std::string::npos);
  LmdbWriter(folder.file("void")).finish();
  EXPECT_NE(messageOf([&] { lmdb(folder.file("void")); }).find("holds no records"), std::string::npos);
}

// Every single-byte change in the first bytes of every page, and many random ones, give an error or the records, never
// a crash. All values are read, as one outside the file would crash only then.
TEST(Lmdb, DamagedPagesAreFoundBeforeTheyAreUsed) {
  test::TemporaryFolder folder;
  {
    LmdbWriter writer(folder.file("db"));
    for (int i = 0; i < 300; ++i)
      writer.put(fmt::format("{:08d}", i), std::string(static_cast<size_t>(i % 7 == 0 ? 9000 : 200), 'v'));
    writer.finish();
  }
  const std::string whole = readFile(folder.file("db/data.mdb"));
  int refused = 0, read = 0;
  std::string value;  // of a copy, sanitizers check the whole range at once
  const auto judge = [&](const std::string& damaged) {
    try {
      const MemoryBytes file(damaged);
      const LmdbIndex index = lmdbIndex(file, "db");
      for (int64_t i = 0; i < index.records(); ++i) value = lmdbRecord(file, index, i, "db").value;
      ++read;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kData);
      ++refused;
    }
  };
  judge(whole);
  EXPECT_EQ(read, 1);
  EXPECT_EQ(value, std::string(200, 'v'));
  const RandomStream random{RandomKey{}};
  uint64_t draw = 0;
  for (size_t page = 0; page < whole.size() / 4096; ++page)
    for (size_t i = 0; i < 24; ++i) {
      std::string damaged = whole;
      damaged[page * 4096 + i] = static_cast<char>(random.below(draw++, 256));
      judge(damaged);
    }
  for (int k = 0; k < 3000; ++k) {
    std::string damaged = whole;
    for (uint64_t n = random.below(draw++, 20) + 1; n; --n) {
      const auto byte = static_cast<char>(random.below(draw++, 256));
      damaged[random.below(draw++, damaged.size())] = byte;
    }
    judge(damaged);
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(read, 300);
}

// LmdbWriter writes through liblmdb; the shared database was written by another program with it.
TEST(Lmdb, ReadsWhatTheReferenceLibraryWrote) {
  const test::TemporaryFolder folder;
  const auto shared = test::sharedData("mnist/mnist_test_first1000_lmdb");
  if (!shared) {
    LmdbWriter writer(folder.file("db"));
    for (int i = 0; i < 1000; ++i) writer.put(fmt::format("{:08d}", i), std::string(static_cast<size_t>(i * 7), 'x'));
    writer.finish();
  }
  const auto source = lmdb(shared ? *shared : folder.file("db"));
  ASSERT_EQ(source->size(), 1000);
  EXPECT_EQ(source->read(999).key, "00000999");
  EXPECT_TRUE(shared || source->read(999).value == std::string(999 * 7, 'x'));
}

// idx files of `count` images of 3 x 2
std::pair<std::string, std::string> makeIdx(const test::TemporaryFolder& folder, int count) {
  std::string images("\0\0\x08\x03\0\0\0", 7), labels("\0\0\x08\x01\0\0\0", 7);
  images += static_cast<char>(count), labels += static_cast<char>(count);
  images += std::string("\0\0\0\x03\0\0\0\x02", 8);
  for (int i = 0; i < 6 * count; ++i) images += static_cast<char>(i);
  for (int i = 0; i < count; ++i) labels += static_cast<char>(i % 10);
  writeFileAtomically(folder.file("images"), images);
  writeFileAtomically(folder.file("labels"), labels);
  return {folder.file("images"), folder.file("labels")};
}

TEST(Idx, ConvertsAsCaffe) {
  test::TemporaryFolder folder;
  const auto [images, labels] = makeIdx(folder, 12);
  EXPECT_EQ(convertMnist(images, labels, folder.file("db")), 12);
  const auto source = lmdb(folder.file("db"));
  // Datum of 1 x 3 x 2, data 42..47, label 7, in the order of field numbers
  const char expected[] = "\x08\x01\x10\x03\x18\x02\x22\x06*+,-./\x28\x07";
  EXPECT_EQ(source->read(7).value, std::string_view(expected, sizeof expected - 1));
  EXPECT_NE(messageOf([&, i = images, l = labels] { convertMnist(l, i, folder.file("x")); }).find("right order"),
            std::string::npos);
  EXPECT_FALSE(fileExists(folder.file("x")));
  std::filesystem::resize_file(images, 50);
  EXPECT_NE(messageOf([&, i = images] { readIdxImages(i); }).find("promises 12 images"), std::string::npos);
}

// A Datum of 28 x 28 grey pixels as protobuf writes it: channels, height, width, data, label, in the order of their
// numbers. With the shared data also what Caffe's own tool wrote.
TEST(Idx, MnistRecordsEqualCaffesByteForByte) {
  const test::TemporaryFolder folder;
  std::string images("\0\0\x08\x03\0\0\0\x14\0\0\0\x1c\0\0\0\x1c", 16), labels("\0\0\x08\x01\0\0\0\x14", 8);
  for (int i = 0; i < 20 * 784; ++i) images += static_cast<char>(i * 31 % 251);
  for (int i = 0; i < 20; ++i) labels += static_cast<char>(i % 10);
  writeFileAtomically(folder.file("own-images"), images);
  writeFileAtomically(folder.file("own-labels"), labels);
  ASSERT_EQ(convertMnist(folder.file("own-images"), folder.file("own-labels"), folder.file("own")), 20);
  const auto own = lmdb(folder.file("own"));
  for (int64_t i = 0; i < 20; ++i) {
    const std::string pixels = images.substr(static_cast<size_t>(16 + i * 784), 784);
    EXPECT_EQ(own->read(i).key, fmt::format("{:08d}", i));
    EXPECT_EQ(own->read(i).value, std::string("\x08\x01\x10\x1c\x18\x1c\x22\x90\x06") + pixels + '\x28' +
                                      labels[static_cast<size_t>(8 + i)]);
  }
  const auto golden = test::sharedData("mnist/mnist_test_first1000_lmdb"),
             raw = test::sharedData("mnist/t10k-images-idx3-ubyte.gz");
  if (!golden || !raw) return;
  const std::string from = parentDirectory(*raw) + "/t10k-";
  ASSERT_EQ(std::system(fmt::format("gunzip -c {}images-idx3-ubyte.gz > {}; gunzip -c {}labels-idx1-ubyte.gz > {}",
                                    from, folder.file("i"), from, folder.file("l"))
                            .c_str()),
            0);
  ASSERT_EQ(convertMnist(folder.file("i"), folder.file("l"), folder.file("db")), 10000);
  const auto ours = lmdb(folder.file("db")), theirs = lmdb(*golden);
  for (int64_t i = 0; i < theirs->size(); ++i) {
    ASSERT_EQ(ours->read(i).key, theirs->read(i).key);
    ASSERT_EQ(ours->read(i).value, theirs->read(i).value) << i;
  }
}

TEST(Shard, EveryRecordOnceAnEpochAndRanksMakeOneLargeBatch) {
  for (int64_t size : {1, 7, 10, 64, 100, 101, 127, 999})
    for (int batch : {1, 3, 10, 64})
      for (int ranks : {1, 2, 3, 8}) {
        const Sharding d{size, batch, ranks};
        const bool everybody = size >= ranks;
        int64_t total = 0;
        std::set<int64_t> seen;
        for (int r = 0; r < ranks; ++r) {
          const int64_t own = ownedRecords(d, r);
          EXPECT_TRUE(own > 0 || !everybody) << size << " " << batch << " " << ranks;
          total += own;
          for (int64_t p = 0; p < own; ++p) seen.insert(recordIndex(d, r, p));
          EXPECT_TRUE(own == 0 || recordIndex(d, r, own) == recordIndex(d, r, 0));  // wraps
        }
        EXPECT_EQ(total, size);
        EXPECT_EQ(static_cast<int64_t>(seen.size()), size);
        if (everybody)
          checkSharding(d);
        else
          EXPECT_THROW(checkSharding(d), Error);
        for (int64_t step = 0; d.block() == batch && (step + 1) * batch * ranks <= size; ++step)
          for (int r = 0; r < ranks; ++r)
            for (int i = 0; i < batch; ++i)
              EXPECT_EQ(recordIndex(d, r, step * batch + i),
                        recordIndex({size, batch * ranks, 1}, 0, (step * ranks + r) * batch + i));
      }
}

std::vector<float> transformed(const std::string& param, caffe::Phase phase, const caffe::Datum& d, int item = 0,
                               int64_t step = 0) {
  const Transformer t(model::parseText<caffe::TransformationParameter>(param, "param"), phase, "");
  Image decoded;
  const ImageView view = viewOf(d, &decoded, t.colour());
  std::vector<float> out(static_cast<size_t>(t.outputShape(view).count()));
  RandomKey mirror, crop;
  mirror.purpose = RandomPurpose::kMirror, crop.purpose = RandomPurpose::kCrop;
  mirror.step = crop.step = static_cast<uint64_t>(step);
  t.apply<float>(view, RandomStream(mirror), RandomStream(crop), item, out.data());
  return out;
}

TEST(Transformer, ScaleMeanAndCentreCrop) {
  const auto d = datum(2, 3, 4, 0);  // pixels 0..23
  EXPECT_EQ(transformed("scale: 0.5", caffe::TEST, d)[5], 2.5f);
  EXPECT_EQ(transformed("mean_value: 1 mean_value: 10", caffe::TEST, d)[12], 2.f);
  EXPECT_EQ(transformed("crop_size: 2", caffe::TEST, d),
            (std::vector<float>{1, 2, 5, 6, 13, 14, 17, 18}));  // offsets 0 and 1
  EXPECT_EQ(transformed("scale: 2 mean_value: 1", caffe::TEST, d)[3], 4.f);
}

TEST(Transformer, RandomCropsAndMirrorsCoverAllAndRepeat) {
  const auto d = datum(1, 3, 3, 0);
  std::set<std::vector<float>> seen;
  int mirrored = 0;
  for (int i = 0; i < 400; ++i) {
    const auto out = transformed("crop_size: 2 mirror: true", caffe::TRAIN, d, i % 7, i);
    EXPECT_EQ(out, transformed("crop_size: 2 mirror: true", caffe::TRAIN, d, i % 7, i));
    seen.insert(out);
    mirrored += out[0] > out[1];
  }
  EXPECT_EQ(seen.size(), 8u);  // four places, each mirrored or not
  EXPECT_NEAR(mirrored, 200, 60);
}

TEST(Transformer, MeanFileIsSampledAtThePixelsPlace) {
  test::TemporaryFolder folder;
  caffe::BlobProto mean;
  mean.set_num(1), mean.set_channels(1), mean.set_height(3), mean.set_width(3);
  for (int i = 0; i < 9; ++i) mean.add_data(static_cast<float>(i));
  model::writeBinary(folder.file("mean.binaryproto"), mean);
  const std::string param = "mean_file: '" + folder.file("mean.binaryproto") + "' crop_size: 2 mirror: true";
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(transformed(param, caffe::TRAIN, datum(1, 3, 3, 0), i), std::vector<float>(4, 0.f));
  EXPECT_NE(
      messageOf([&] { transformed(param, caffe::TEST, datum(1, 4, 4, 0)); }).find("is 1x3x3 and the records are 1x4x4"),
      std::string::npos);
}

TEST(Transformer, RefusesWhatCannotBe) {
  EXPECT_NE(messageOf([] { transformed("crop_size: 9", caffe::TEST, datum(1, 3, 3, 0)); }).find("crop_size 9 exceeds"),
            std::string::npos);
  EXPECT_NE(messageOf([] {
              transformed("mean_value: 1 mean_value: 2", caffe::TEST, datum(3, 3, 3, 0));
            }).find("2 mean_value entries for 3 channels"),
            std::string::npos);
  caffe::Datum encoded = datum(1, 2, 2, 0);
  encoded.set_encoded(true);
  EXPECT_NE(messageOf([&] { transformed("", caffe::TEST, encoded); }).find("neither JPEG nor PNG"), std::string::npos);
  caffe::Datum lying = datum(1, 2, 2, 0);
  lying.set_width(5);
  EXPECT_NE(messageOf([&] { transformed("", caffe::TEST, lying); }).find("1x2x5 and 4 values"), std::string::npos);
}

}  // namespace
}  // namespace crema::data
