// The memory of blobs: what they keep when they are placed in another's, grow or share.
#include "tensor/blob.h"

#include <gtest/gtest.h>

#include <vector>

namespace crema {
namespace {

// Several pieces of 8 MiB and some more, of which Storage::moveTo() gives the pages back.
constexpr int kLarge = (16 << 20) / sizeof(float) + 5;

void fill(Blob& b) {
  for (int i = 0; i < b.count(); ++i) b.mutableData<float>()[i] = static_cast<float>(i % 65'521);
}
bool isFilled(const Blob& b, int from = 0) {
  for (int i = from; i < b.count(); ++i)
    if (b.data<float>()[i] != static_cast<float>(i % 65'521)) return false;
  return true;
}

TEST(Blob, KeepsItsValuesWhereItIsPlaced) {
  for (const int count : {1, 1000, kLarge - 5, kLarge}) {
    Blob mine(Shape{count}, DType::kFloat32), whole(Shape{count + 64}, DType::kFloat32);
    fill(mine);
    mine.placeDataIn(whole, 32);
    EXPECT_TRUE(isFilled(mine)) << count;
    EXPECT_EQ(mine.data<float>(), whole.data<float>() + 32);
    EXPECT_EQ(whole.data<float>()[31], 0);
    EXPECT_EQ(whole.data<float>()[32 + count], 0);
    Blob again(Shape{count + 64},
               DType::kFloat32);  // a part moves as well, and the whole that it leaves keeps its values
    mine.placeDataIn(again, 64);
    EXPECT_TRUE(isFilled(mine)) << count;
    EXPECT_EQ(whole.data<float>()[32 + count - 1], static_cast<float>((count - 1) % 65'521));
  }
}

TEST(Blob, LeavesToWhomItSharesWithWhatTheyHave) {
  Blob mine(Shape{kLarge}, DType::kFloat32), sharer(Shape{kLarge}, DType::kFloat32),
      whole(Shape{kLarge + 11}, DType::kFloat32);
  fill(mine);
  sharer.shareData(mine);
  mine.placeDataIn(whole, 0);
  EXPECT_TRUE(isFilled(mine));
  EXPECT_TRUE(isFilled(sharer));
  EXPECT_NE(mine.data<float>(), sharer.data<float>());
}

TEST(Blob, KeepsItsValuesAsItGrows) {
  Blob b(Shape{1000}, DType::kFloat32);
  fill(b);
  b.reshape(Shape{kLarge});
  EXPECT_EQ(b.data<float>()[999], 999);
  EXPECT_EQ(b.data<float>()[kLarge - 1], 0);
  b.reshape(Shape{10});
  EXPECT_TRUE(isFilled(b));
}

}  // namespace
}  // namespace crema
