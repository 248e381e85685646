// Lists of image files, and batches of them.
#include "data/image_list.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "data/batch_feed.h"
#include "data/encode.h"
#include "support/message_of.h"
#include "support/shared_data.h"

namespace crema::data {
namespace {

using test::messageOf;

const std::string kImages = CREMA_SOURCE_DIR "/tests/goldens/images/";

// height x width pixels of one grey level.
std::string flat(int height, int width, int level) {
  return encodePng(
      {1, height, width,
       std::vector<unsigned char>(static_cast<size_t>(height * width), static_cast<unsigned char>(level))});
}

struct Lists {
  test::TemporaryFolder folder;
  std::string write(const std::string& text) {
    const std::string path = folder.file("list");
    writeFileAtomically(path, text);
    return path;
  }
  // n images of 2 x 3 pixels of level 10 i, labels i.
  std::shared_ptr<ImageList> levels(int n) {
    std::string text;
    for (int i = 0; i < n; ++i) {
      writeFileAtomically(folder.file(fmt::format("{}.png", i)), flat(2, 3, 10 * i));
      text += fmt::format("{}.png {}\n", i, i);
    }
    return std::make_shared<ImageList>(write(text));
  }
  ListedImages options() const {
    ListedImages o;
    o.root = folder.path() + "/";
    o.reading.colour = ColourMode::kGrey;
    return o;
  }
  BatchMaker maker(const std::shared_ptr<ImageList>& list, int batch, const ListedImages& o) {
    BatchMaker m;
    m.source = list, m.samples = listedImageSamples(o, list);
    m.options.batch = batch, m.options.layer = "images";
    return m;
  }
};

TEST(ImageList, LinesAsPeopleWriteThem) {
  Lists l;
  const ImageList list(l.write("a.jpg 1\r\n\nfolder/b c.png   -2\n \t \nd.png\t+3  \ne 4 5\nlast 2147483647"));
  ASSERT_EQ(list.size(), 5);
  const std::vector<std::pair<std::string, int>> want = {
      {"a.jpg", 1}, {"folder/b c.png", -2}, {"d.png", 3}, {"e 4", 5}, {"last", 2147483647}};
  const std::vector<int64_t> lines = {1, 3, 5, 6, 7};
  for (int64_t i = 0; i < 5; ++i) {
    const auto k = static_cast<size_t>(i);
    EXPECT_EQ(list.at(i).path, want[k].first);
    EXPECT_EQ(list.at(i).label, want[k].second);
    EXPECT_EQ(list.lineOf(list.read(i)), lines[k]);
  }
}

TEST(ImageList, WhatIsNoLineGetsASentence) {
  Lists l;
  const auto refused = [&](const std::string& text) { return messageOf([&] { ImageList list(l.write(text)); }); };
  const std::string path = l.folder.file("list");
  EXPECT_NE(refused("a.jpg 1\n\nb.jpg\n").find("line 3 of " + path + ", 'b.jpg', has no label"), std::string::npos);
  EXPECT_NE(refused("a.jpg 0.5\n").find("'0.5' is no label"), std::string::npos);
  EXPECT_NE(refused("a.jpg 2147483648\n").find("below 2^31"), std::string::npos);
  EXPECT_NE(refused("a b.jpg\n").find("'b.jpg' is no label"), std::string::npos);
  EXPECT_NE(refused(" 7\n").find("a label and no path"), std::string::npos);
  EXPECT_NE(refused("\r\n\n").find("File is empty"), std::string::npos);
  EXPECT_NE(messageOf([] { ImageList("/absent/list"); }).find("/absent/list"), std::string::npos);
}

// From line 3 of 5 on, wrapping: Caffe's rand_skip.
TEST(ImageList, StartsAtTheGivenPosition) {
  Lists l;
  const auto list = l.levels(5);
  list->rotate(3);
  BatchMaker m = l.maker(list, 4, l.options());
  Batch batch;
  m.train(0, 0, &batch);
  EXPECT_EQ(batch.tops[1], (std::vector<float>{3, 4, 0, 1}));
  m.train(0, 1, &batch);
  EXPECT_EQ(batch.tops[1], (std::vector<float>{2, 3, 4, 0}));
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(batch.tops[0][static_cast<size_t>(6 * i + 5)], 10 * batch.tops[1][static_cast<size_t>(i)]);
}

// Two ranks of 11 images in blocks of 2: every epoch of a rank has its own images once, in another order than the epoch
// before; a step asked for by itself is the step of the sequence.
TEST(ImageList, ShuffledEpochByEpoch) {
  Lists l;
  const auto list = l.levels(11);
  BatchMaker m = l.maker(list, 2, l.options());
  m.options.ranks = 2, m.options.shuffle = true;
  const std::vector<std::multiset<float>> own = {{0, 1, 4, 5, 8, 9}, {2, 3, 6, 7, 10}};
  for (int rank : {0, 1}) {
    std::vector<float> sequence;
    for (int64_t step = 0; step < 15; ++step) {
      Batch batch;
      m.train(rank, step, &batch);
      sequence.insert(sequence.end(), batch.tops[1].begin(), batch.tops[1].end());
      EXPECT_EQ(batch.tops[0][0], 10 * batch.tops[1][0]);
    }
    const auto n = static_cast<ptrdiff_t>(own[static_cast<size_t>(rank)].size());
    std::set<std::vector<float>> orders;
    for (ptrdiff_t epoch = 0; (epoch + 1) * n <= 30; ++epoch) {
      const std::vector<float> order(sequence.begin() + epoch * n, sequence.begin() + (epoch + 1) * n);
      EXPECT_EQ(std::multiset<float>(order.begin(), order.end()), own[static_cast<size_t>(rank)]);
      orders.insert(order);
    }
    EXPECT_GT(orders.size(), 3u);
    Batch again;
    m.train(rank, 7, &again);
    EXPECT_EQ(again.tops[1], (std::vector<float>{sequence[14], sequence[15]}));
  }
}

TEST(ImageList, ABadFileIsNamedWithLineAndList) {
  Lists l;
  const auto list = l.levels(3);
  writeFileAtomically(l.folder.file("1.png"), flat(2, 3, 7).substr(0, 60));
  BatchMaker m = l.maker(list, 1, l.options());
  Batch batch;
  m.train(0, 0, &batch);
  const std::string cut = messageOf([&] { m.train(0, 1, &batch); });
  for (const std::string& part : {l.folder.file("1.png"), std::string("line 2 of image list " + l.folder.file("list")),
                                  std::string("the image is a PNG")})
    EXPECT_NE(cut.find(part), std::string::npos) << cut;
  std::filesystem::remove(l.folder.file("2.png"));
  const std::string gone = messageOf([&] { m.train(0, 2, &batch); });
  for (const std::string& part :
       {l.folder.file("2.png"), std::string("line 3 of image list"), std::string("No such file")})
    EXPECT_NE(gone.find(part), std::string::npos) << gone;
  BatchFeed feed(m);  // the error passes from the background thread to the caller
  feed.next(0, 0);
  EXPECT_NE(messageOf([&] { feed.next(0, 1); }).find("1.png"), std::string::npos);
}

TEST(ImageList, SizesDifferOnlyOneByOne) {
  Lists l;
  writeFileAtomically(l.folder.file("a.png"), flat(2, 3, 7));
  writeFileAtomically(l.folder.file("b.png"), flat(5, 4, 9));
  const auto list = std::make_shared<ImageList>(l.write("a.png 1\nb.png 2\n"));
  Batch batch;
  EXPECT_NE(messageOf([&] {
              l.maker(list, 2, l.options()).train(0, 0, &batch);
            }).find("it is 1x5x4 and becomes 1x5x4, the first image becomes 1x2x3"),
            std::string::npos);
  ListedImages o = l.options();
  o.varies = true;
  BatchMaker m = l.maker(list, 1, o);
  for (int64_t step : {0, 1, 2}) {
    m.train(0, step, &batch);
    EXPECT_EQ(batch.shapes[0].brief(), step == 1 ? "1x5x4" : "1x2x3");
    EXPECT_EQ(batch.tops[0], std::vector<float>(step == 1 ? 20 : 6, step == 1 ? 9.f : 7.f));
    EXPECT_EQ(batch.tops[1], (std::vector<float>{step == 1 ? 2.f : 1.f}));
  }
  o.varies = false, o.transform.set_crop_size(2);  // one size after the crop
  l.maker(list, 2, o).train(0, 0, &batch);
  EXPECT_EQ(batch.tops[0], (std::vector<float>{7, 7, 7, 7, 9, 9, 9, 9}));
}

}  // namespace
}  // namespace crema::data
