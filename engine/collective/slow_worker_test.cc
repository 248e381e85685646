// How long an exchange waits for a worker that sends little, or nothing, by a clock that the test moves.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

#include "base/door.h"
#include "collective/mesh.h"
#include "support/hand_clock.h"
#include "support/mesh_world.h"
#include "support/message_of.h"
#include "support/settle.h"

namespace crema::collective {
namespace {

class TestedMesh : public Mesh {
 public:
  using Mesh::Mesh;
  std::atomic<double> advanced{0};

 protected:
  double someoneAdvanced() const override { return advanced; }
};

// Worker 0 of two sums with worker 1, which the test plays; its limit is 10 s.
class SlowWorker : public testing::Test {
 protected:
  static constexpr size_t kBytes = 48 * sizeof(float);  // worker 0 owns 48 of 100 floats

  SlowWorker() {
    const Deadline soon = test::patience();
    one_ = connectThroughDoor(world_.addresses[0], world_.secret, "data", soon, nullptr, soon);
    says({FrameHeader::kMagic, 1, FrameHeader::kHello, 1, 0, 0});
    mesh_ = std::make_unique<TestedMesh>(world_.options(0, 2));
    sum_ = std::async(std::launch::async, [this] {
      return test::messageOf([this] {
        std::vector<float> v(100), total(100);
        mesh_->allReduce({v.data()}, total.data(), 100, tag_);
      });
    });
  }
  ~SlowWorker() override { mesh_->abandon(); }
  void says(const FrameHeader& h) { one_.writeAll(&h, sizeof h, test::patience(), nullptr); }
  bool waitsFor(double seconds) {
    test::settle();
    clock_.advance(seconds);
    test::settle();
    return sum_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  }
  void isLate() {
    EXPECT_FALSE(waitsFor(2.5));
    const std::string why = sum_.get();
    EXPECT_EQ(why.find("no data from worker 1 ("), 0u) << why;
    EXPECT_NE(why.find(") for 10 s in "), std::string::npos) << why;
  }

  const Tag tag_ = Tag::gradient(7);
  test::HandClock clock_;
  test::MeshWorld world_{2};
  Socket one_;
  std::unique_ptr<TestedMesh> mesh_;
  std::future<std::string> sum_;
};

TEST_F(SlowWorker, NothingEndsTheWait) {
  EXPECT_TRUE(waitsFor(8));
  isLate();
}

// Of a slow link, or one on which packets are lost and sent again.
TEST_F(SlowWorker, BytesProlongIt) {
  EXPECT_TRUE(waitsFor(8));
  says({FrameHeader::kMagic, 1, FrameHeader::kScatter, 1, tag_.value(), kBytes});
  const std::vector<char> part(kBytes / 6);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(waitsFor(8)) << i;
    one_.writeAll(part.data(), part.size(), test::patience(), nullptr);
  }
  EXPECT_TRUE(waitsFor(8));
  isLate();
}

// What a worker waits until another one begins is not the exchange's time, nor is what it computes meanwhile.
TEST_F(SlowWorker, TheWaitForItsBeginningIsCountedApart) {
  EXPECT_TRUE(waitsFor(3));
  mesh_->setWaiting(true);
  EXPECT_TRUE(waitsFor(4));
  EXPECT_EQ(mesh_->waitedForOthers(), 0);
  says({FrameHeader::kMagic, 1, FrameHeader::kScatter, 1, tag_.value(), kBytes});
  EXPECT_TRUE(waitsFor(5));
  EXPECT_DOUBLE_EQ(mesh_->waitedForOthers(), 4);
}

TEST_F(SlowWorker, WhoComputesProlongsIt) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(waitsFor(8)) << i;
    mesh_->advanced = monotonicSeconds();
  }
  EXPECT_TRUE(waitsFor(8));
  isLate();
}

}  // namespace
}  // namespace crema::collective
