// Records that a host program sends: rows to be staged or scored, and ranges of files that only it can open.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/mutex.h"
#include "data/remote_file.h"
#include "data/row.h"
#include "data/row_window.h"
#include "data/samples.h"
#include "data/staged_source.h"
#include "model/proto_io.h"
#include "support/message_of.h"
#include "support/shared_data.h"

namespace crema::data {
namespace {

using test::messageOf;

std::string floats(std::vector<float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}
std::string ints(std::vector<int32_t> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int32_t)};
}
std::string rowOf(const std::vector<std::string>& fields) {
  std::string row;
  for (const auto& f : fields) {
    std::string part(rowFieldBytes(f.size()), '\0');
    putRowField(part.data(), f);
    row += part;
  }
  return row;
}

// A host that answers from memory, a moment later.
TEST(RemoteFile, RangesAreFetchedOnceAndOnlyWhereTheyAreRead) {
  test::TemporaryFolder folder;
  std::string bytes(3 << 20, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  Mutex mutex;
  std::vector<std::pair<uint64_t, uint64_t>> asked;
  std::vector<std::thread> answers;
  RemoteFile* self = nullptr;
  RemoteFile file(
      folder.file(""), "the file", bytes.size(), 128 << 10,
      [&](uint64_t offset, uint64_t length) {
        const MutexLock lock(mutex);
        asked.emplace_back(offset, length);
        answers.emplace_back(
            [&, offset, length] { self->arrived(offset, std::string_view(bytes).substr(offset, length)); });
      },
      nullptr);
  self = &file;
  std::vector<std::thread> readers;
  for (int r = 0; r < 4; ++r)
    readers.emplace_back([&, r] {
      for (uint64_t at = static_cast<uint64_t>(r) * 1000; at + 5000 < (1 << 20); at += 7777)
        EXPECT_EQ(file.range(at, 5000), std::string_view(bytes).substr(at, 5000));
    });
  for (auto& t : readers) t.join();
  EXPECT_EQ(file.range(bytes.size() - 10, 10), std::string_view(bytes).substr(bytes.size() - 10));
  for (auto& t : answers) t.join();
  std::set<uint64_t> offsets;
  for (const auto& [offset, length] : asked) EXPECT_TRUE(offsets.insert(offset).second) << "asked twice for " << offset;
  uint64_t fetched = 0;
  for (const auto& [offset, length] : asked) fetched += length;
  EXPECT_LT(fetched, bytes.size() / 2);
  EXPECT_EQ(asked[0].second, uint64_t{128} << 10);
}

// A host may take no request before the worker has taken what the host sends: requests are written without a lock that
// arriving bytes need. Here they arrive within the request itself.
TEST(RemoteFile, BytesArriveWhileARequestIsWritten) {
  test::TemporaryFolder folder;
  const std::string bytes(1 << 20, 'x');
  RemoteFile* self = nullptr;
  int asked = 0;
  RemoteFile file(
      folder.file(""), "the file", bytes.size(), 0,
      [&](uint64_t offset, uint64_t length) {
        ++asked;
        self->arrived(offset, std::string_view(bytes).substr(offset, length));
      },
      nullptr);
  self = &file;
  EXPECT_EQ(file.range(100 << 10, 10), bytes.substr(0, 10));
  EXPECT_EQ(file.range(0, bytes.size()), bytes);  // what lies before and behind the first range
  EXPECT_EQ(file.range(0, bytes.size()), bytes);
  EXPECT_EQ(asked, 3);
}

TEST(RemoteFile, WhatTheHostCannotGiveEndsTheWait) {
  test::TemporaryFolder folder;
  RemoteFile* self = nullptr;
  std::thread answer;
  RemoteFile file(
      folder.file(""), "the file", 1 << 20, 0,
      [&](uint64_t, uint64_t) {
        answer = std::thread([&] { self->fail(Error(ErrorKind::kIo, "reading hdfs://x failed")); });
      },
      nullptr);
  self = &file;
  EXPECT_NE(messageOf([&] { file.range(0, 1); }).find("reading hdfs://x failed"), std::string::npos);
  answer.join();
  EXPECT_NE(messageOf([&] { file.arrived(5, "x"); }).find("nobody asked for"), std::string::npos);
  EXPECT_NE(messageOf([&] { RemoteFile(folder.file(""), "it", 0, 0, {}, nullptr); }).find("it is empty"),
            std::string::npos);
}

// An error of this machine: the others of a run go on without its worker.
TEST(RemoteFile, AHostThatAnswersNothingIsAnErrorOfItsMachine) {
  test::TemporaryFolder folder;
  const RemoteFile file(
      folder.file(""), "hdfs://x", 1 << 20, 0, [](uint64_t, uint64_t) {}, nullptr, 0.2);
  try {
    file.range(0, 1);
    FAIL() << "bytes that nobody has sent";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kIo);
    EXPECT_NE(std::string(e.what()).find("no bytes of hdfs://x have come for 0.2 s"), std::string::npos) << e.what();
  }
}

// Which records come to a worker, and in which order, follows from the sharding alone.
TEST(StagedSource, GetsTheRecordsOfItsRanksInOrder) {
  for (int64_t records : {1, 5, 12, 100, 101})
    for (int batch : {1, 4, 10})
      for (int ranks : {1, 2, 5})
        for (int lo = 0; lo < ranks && records >= ranks; ++lo)
          for (int hi = lo + 1; hi <= ranks; ++hi) {
            const StagePlan plan{records, true, batch, ranks, lo, hi};
            std::set<int64_t> mine;
            for (int r = lo; r < hi; ++r)
              for (int64_t p = 0; p < ownedRecords({records, batch, ranks}, r); ++p)
                mine.insert(recordIndex({records, batch, ranks}, r, p));
            ASSERT_EQ(plan.expected(), static_cast<int64_t>(mine.size()));
            int64_t local = 0;
            for (const int64_t global : mine) {
              ASSERT_EQ(plan.globalOf(local), global)
                  << records << " " << batch << " " << ranks << " " << lo << " " << hi;
              ASSERT_EQ(plan.localOf(global), local++);
            }
            for (int64_t g = 0; g < records; ++g) ASSERT_EQ(plan.localOf(g) >= 0, mine.count(g) == 1);
          }
}

TEST(StagedSource, ReadersWaitForRowsThatAreOnTheirWay) {
  test::TemporaryFolder folder;
  StagedSource source(folder.file(""), "rows", {1000, false, 1, 1, 0, 1}, nullptr);
  const std::string big(5000, 'x');
  std::thread sender([&] {
    for (int i = 0; i < 1000; ++i) {
      const std::string id = std::to_string(i), field = floats({static_cast<float>(i)});
      source.append(i, {id, field, big});
    }
    source.finish();
  });
  for (int i = 999; i >= 0; i -= 37) {
    const Record r = source.read(i);
    EXPECT_EQ(r.key, std::to_string(i));
    RowReader reader(r.value);
    EXPECT_EQ(reader.next(), floats({static_cast<float>(i)}));
    EXPECT_EQ(reader.next(), big);
    EXPECT_FALSE(reader.more());
  }
  sender.join();
}

TEST(StagedSource, EveryEndOfAWaitHasItsReason) {
  test::TemporaryFolder folder;
  const auto make = [&](const Interrupt* interrupt) {
    return std::make_unique<StagedSource>(folder.file(""), "the rows", StagePlan{10, false, 1, 1, 0, 1}, interrupt);
  };
  const auto late = [](auto end) {
    return std::thread([end] { std::this_thread::sleep_for(std::chrono::milliseconds(50)), end(); });
  };
  auto failed = make(nullptr);
  std::thread a = late([&] { failed->fail(Error(ErrorKind::kPeer, "the host is gone")); });
  EXPECT_NE(messageOf([&] { failed->read(3); }).find("the host is gone"), std::string::npos);
  auto closed = make(nullptr);
  std::thread b = late([&] { closed->close(); });
  EXPECT_NE(messageOf([&] { closed->read(3); }).find("not wanted any more"), std::string::npos);
  Interrupt interrupt;
  auto interrupted = make(&interrupt);
  std::thread c = late([&] { interrupt.raise(Error(ErrorKind::kStopped, "stop now")); });
  EXPECT_NE(messageOf([&] { interrupted->read(3); }).find("stop now"), std::string::npos);
  for (auto* t : {&a, &b, &c}) t->join();
  auto shortOne = make(nullptr);
  shortOne->append(0, {"0"});
  EXPECT_NE(messageOf([&] { shortOne->finish(); }).find("1 rows of the rows came where 10"), std::string::npos);
  EXPECT_NE(messageOf([&] { shortOne->append(5, {"5"}); }).find("row 5 of the rows came where row 1"),
            std::string::npos);
  EXPECT_NE(messageOf([] { StagedSource("/nowhere/at/all", "rows", {}, nullptr); }).find("/nowhere/at/all"),
            std::string::npos);
}

TEST(RowWindow, HoldsBackTheSenderAndForgetsWhatWasRead) {
  Interrupt interrupt;
  RowWindow window("rows", &interrupt);
  std::atomic<int> sent{0};
  std::thread sender([&] {
    const std::string big(8 << 20, 'x');
    for (int i = 0; i < 40; ++i, ++sent) window.append({std::to_string(i), big});
    window.finish();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(sent, 8);                       // 32 MiB, and the one being sent
  for (int64_t at = 0; at < 40; at += 7) {  // 56 MiB are wanted at once: more than the bound
    const int64_t have = window.waitFor(at + 7);
    EXPECT_EQ(have, std::min<int64_t>(40, at + 7));
    for (int64_t i = at; i < have; ++i) EXPECT_EQ(window.read(i).key, std::to_string(i));
    window.release(have);
  }
  EXPECT_EQ(window.waitFor(50), 40);
  sender.join();
  EXPECT_THROW(window.read(3), Error);
}

TEST(Samples, RowsOfMemoryData) {
  ImageOptions o;
  o.channels = 2, o.height = 1, o.width = 3;
  const auto maker = imageRowSamples(o);
  std::vector<float> image(6), label(1);
  const auto make = [&](const std::string& head, const std::string& bytes) {
    const std::string row = rowOf({floats({7}), head + bytes});
    maker->make({"id", row}, {}, 0, {image.data(), label.data()});
  };
  make(ints({2, 1, 3, 0}), "\x01\x0a\x02\x0b\x03\x0c");  // pixels: channels side by side
  EXPECT_EQ(image, (std::vector<float>{1, 2, 3, 10, 11, 12}));
  EXPECT_EQ(label[0], 7);
  make(ints({0, 0, 0, 0}), "\x01\x0a\x02\x0b\x03\x0d");  // without sizes: the layer's
  EXPECT_EQ(image[5], 13);
  EXPECT_NE(messageOf([&] {
              make(ints({2, 1, 3, 0}), "12345");
            }).find("5 bytes, not the 6 of 2x1x3"),
            std::string::npos);
  EXPECT_NE(messageOf([&] {
              make(ints({2, 1, 2, 0}), "1234");
            }).find("correct channels, height and width"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { make(ints({0, 0, 0, 1}), "1234"); }).find("neither JPEG nor PNG"), std::string::npos);
}

TEST(Samples, RowsOfCoSData) {
  const auto param = model::parseText<caffe::CoSDataParameter>(
      "top { name: 'n' type: FLOAT channels: 1 sample_num_axes: 0 }"
      "top { name: 'a' type: INT_ARRAY channels: 3 sample_num_axes: 1 transpose: true }"
      "top { name: 'i' type: RAW_IMAGE channels: 1 height: 2 width: 2 transform_param { scale: 0.5 } }",
      "param");
  const auto maker = cosRowSamples(param, caffe::TRAIN, "", false);
  ASSERT_EQ(maker->tops(), 3u);
  EXPECT_EQ(maker->shape(0).axes(), 0);
  EXPECT_EQ(maker->shape(1), (Shape{3}));
  EXPECT_EQ(maker->shape(2), (Shape{1, 2, 2}));
  std::vector<float> n(1), a(3), i(4);
  const auto make = [&](const std::string& array) {
    const std::string row = rowOf({floats({4}), array, ints({1, 2, 2, 0}) + "\x02\x04\x06\x08"});
    maker->make({"id", row}, {}, 0, {n.data(), a.data(), i.data()});
  };
  make(floats({1, 2, 3}));
  EXPECT_EQ(n[0], 4);
  EXPECT_EQ(a, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(i, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_NE(messageOf([&] {
              make(floats({1, 2, 3, 4}));
            }).find("blob size is 3, but total data length is 4."),
            std::string::npos);
  EXPECT_NE(messageOf([&] { make(floats({1, 2, 3, 4})); }).find("-captionLength 3"), std::string::npos);
  make(floats({5, 6}));  // zeros, whatever the memory held
  EXPECT_EQ(a, (std::vector<float>{5, 6, 0}));
}

TEST(Samples, CosDataThatContradictsItself) {
  const auto messageFor = [](const char* top) {
    return messageOf(
        [&] { cosRowSamples(model::parseText<caffe::CoSDataParameter>(top, "param"), caffe::TRAIN, "", false); });
  };
  EXPECT_NE(messageFor("top { name: 'i' type: RAW_IMAGE channels: 1 height: 2 width: 2 }")
                .find("Images require a transformer"),
            std::string::npos);
  EXPECT_NE(messageFor("top { name: 'a' type: INT_ARRAY channels: 3 height: 1 width: 1 transpose: true }")
                .find("transpose needs sample_num_axes: 1"),
            std::string::npos);
  EXPECT_NE(messageFor("top { name: 'a' type: FLOAT sample_num_axes: 4 }").find("at most 3"), std::string::npos);
  EXPECT_NE(messageFor("top { name: 'a' type: FLOAT_ARRAY sample_num_axes: 1 }").find("must be given and positive"),
            std::string::npos);
  EXPECT_NE(messageFor("top { name: 'i' type: RAW_IMAGE channels: 1 height: 4 width: 4 out_height: 3 out_width: 3 "
                       "transform_param { crop_size: 2 } }")
                .find("the transform makes 1x2x2"),
            std::string::npos);
}

}  // namespace
}  // namespace crema::data
