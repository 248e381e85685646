#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "data/batch_feed.h"
#include "data/idx.h"
#include "data/lmdb_writer.h"
#include "data/shard.h"
#include "data/source.h"
#include "data/transformer.h"
#include "model/proto_io.h"
#include "support/shared_data.h"

namespace crema {
namespace {

std::string messageOf(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

caffe::Datum datum(int c, int h, int w, int label, int first = 0) {
  caffe::Datum d;
  d.set_channels(c), d.set_height(h), d.set_width(w), d.set_label(label);
  std::string bytes(static_cast<size_t>(c * h * w), '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>((static_cast<int>(i) + first) % 256);
  d.set_data(bytes);
  return d;
}

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
}

TEST(Shard, EveryRecordOnceAnEpochAndRanksMakeOneLargeBatch) {
  for (int64_t size : {1, 7, 10, 64, 100, 101, 127, 999})
    for (int batch : {1, 3, 10, 64})
      for (int ranks : {1, 2, 3, 8}) {
        const Dealing d{size, batch, ranks};
        bool everybody = true;
        int64_t total = 0;
        std::set<int64_t> seen;
        for (int r = 0; r < ranks; ++r) {
          const int64_t own = ownedRecords(d, r);
          everybody = everybody && own > 0;
          total += own;
          for (int64_t p = 0; p < own; ++p) seen.insert(recordIndex(d, r, p));
          if (own) EXPECT_EQ(recordIndex(d, r, own), recordIndex(d, r, 0));  // wraps
        }
        EXPECT_EQ(total, size);
        EXPECT_EQ(static_cast<int64_t>(seen.size()), size);
        if (everybody)
          checkDealing(d);
        else
          EXPECT_THROW(checkDealing(d), Error);
        for (int64_t step = 0; everybody && (step + 1) * batch * ranks <= size; ++step)
          for (int r = 0; r < ranks; ++r)
            for (int i = 0; i < batch; ++i)
              EXPECT_EQ(recordIndex(d, r, step * batch + i),
                        recordIndex({size, batch * ranks, 1}, 0, (step * ranks + r) * batch + i));
      }
}

std::vector<float> transformed(const std::string& param, caffe::Phase phase, const caffe::Datum& d, int item = 0,
                               int64_t step = 0) {
  const Transformer t(parseText<caffe::TransformationParameter>(param, "param"), phase, "");
  std::vector<float> out(static_cast<size_t>(t.outputShape(d).count()));
  RandomKey mirror, crop;
  mirror.purpose = RandomPurpose::kMirror, crop.purpose = RandomPurpose::kCrop;
  mirror.step = crop.step = static_cast<uint64_t>(step);
  t.apply<float>(d, RandomStream(mirror), RandomStream(crop), item, out.data());
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
  writeBinary(folder.file("mean.binaryproto"), mean);
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
  EXPECT_NE(messageOf([&] { transformed("", caffe::TEST, encoded); }).find("encoded"), std::string::npos);
  caffe::Datum lying = datum(1, 2, 2, 0);
  lying.set_width(5);
  EXPECT_NE(messageOf([&] { transformed("", caffe::TEST, lying); }).find("1x2x5 and 4 values"), std::string::npos);
}

FeedOptions feedOptions(int batch, int ranks, std::vector<int> mine, int steps) {
  FeedOptions o;
  o.batch = batch, o.ranks = ranks, o.myRanks = std::move(mine), o.stepsPerRank = steps, o.prefetch = 2;
  return o;
}

TEST(BatchFeed, OrderSeekAndContents) {
  test::TemporaryFolder folder;
  writeRecords(folder.file("db"), 50);
  const auto source = lmdb(folder.file("db"));
  const Transformer plain(caffe::TransformationParameter(), caffe::TRAIN, "");
  BatchFeed feed(source, plain, feedOptions(4, 3, {0, 2}, 2));
  const auto check = [&](int rank, int64_t step) {
    const Batch& b = feed.next(rank, step);
    for (int i = 0; i < 4; ++i) {
      const int64_t record = recordIndex({50, 4, 3}, rank, step * 4 + i);
      EXPECT_EQ(b.labels[static_cast<size_t>(i)], record % 10);
      EXPECT_EQ(b.data[static_cast<size_t>(i) * 4], static_cast<float>(record % 256));
    }
  };
  for (int64_t iteration = 0; iteration < 8; ++iteration)
    for (int rank : {0, 2})
      for (int sub = 0; sub < 2; ++sub) check(rank, iteration * 2 + sub);
  check(2, 3);    // back
  check(0, 100);  // ahead, and on from there
  check(0, 101);
  check(2, 100);
}

TEST(BatchFeed, AForeignRecordIsNamed) {
  test::TemporaryFolder folder;
  {
    LmdbWriter writer(folder.file("db"));
    for (int i = 0; i < 9; ++i)
      writer.put(fmt::format("{:08d}", i), (i == 6 ? datum(1, 3, 3, 0) : datum(1, 2, 2, 0)).SerializeAsString());
    writer.finish();
  }
  BatchFeed feed(lmdb(folder.file("db")), Transformer(caffe::TransformationParameter(), caffe::TRAIN, ""),
                 feedOptions(3, 1, {0}, 1));
  feed.next(0, 0);
  feed.next(0, 1);
  const std::string m = messageOf([&] { feed.next(0, 2); });
  EXPECT_NE(m.find("00000006"), std::string::npos) << m;
  EXPECT_NE(m.find("1x3x3"), std::string::npos) << m;
}

TEST(BatchFeed, FewerRecordsThanRanks) {
  test::TemporaryFolder folder;
  writeRecords(folder.file("db"), 5);
  const std::string m = messageOf([&] {
    BatchFeed(lmdb(folder.file("db")), Transformer(caffe::TransformationParameter(), caffe::TRAIN, ""),
              feedOptions(4, 3, {0}, 1));
  });
  EXPECT_NE(m.find("not enough for 3 ranks"), std::string::npos) << m;
}

}  // namespace
}  // namespace crema
