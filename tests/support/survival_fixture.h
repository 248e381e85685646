// A run that goes on without lost workers, as its coordinator leads it: scripted workers and a clock that the test moves.
#pragma once
#include <string>
#include <vector>

#include "support/training_fixture.h"

namespace crema::worker::test {

class SurvivalTest : public TrainingTest {
 protected:
  SurvivalTest() { options_.replacement = cluster::Replacement::kGoOn; }
  bool lost(int w) {
    return c_->saw([w](const wire::Event& e) { return e.has_lost() && e.lost().worker() == w; });
  }
  // What worker w hears next: the next generation, which is to come at once or behind a step.
  void hearsRegroup(int w, uint32_t generation, bool atBorder) {
    const auto m = workers_[static_cast<size_t>(w)].hear();
    ASSERT_TRUE(m.has_regroup()) << m.ShortDebugString();
    EXPECT_EQ(m.regroup().generation(), generation);
    EXPECT_EQ(m.regroup().at_border(), atBorder);
  }
  // The next generation begins with these workers and their states.
  void hearsStart(int w, uint32_t generation, const std::vector<int>& numbers, const std::vector<int64_t>& iterations) {
    const auto m = workers_[static_cast<size_t>(w)].hear();
    ASSERT_TRUE(m.has_start()) << m.ShortDebugString();
    const auto& s = m.start();
    snapshot_ = s.snapshot();
    EXPECT_EQ(s.generation(), generation);
    EXPECT_EQ(std::vector<int>(s.number().begin(), s.number().end()), numbers);
    EXPECT_EQ(std::vector<int64_t>(s.iteration().begin(), s.iteration().end()), iterations);
    EXPECT_EQ(s.share_end(s.share_end_size() - 1), ranks) << "all ranks belong to somebody";
  }
  void comesAgain(int w, bool ready = true) {
    ScriptedMember& m = workers_[static_cast<size_t>(w)];
    m = ScriptedMember(c_->address(), w);
    m.hello.set_attempt(++attempt_);
    m.sayHello();
    if (ready) m.sayReady();
  }
  void endsHere() {
    stop_.raise(Error(ErrorKind::kStopped, "enough"));
    for (auto& w : workers_) w.hangUp();
    EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
  }
  int attempt_ = 0;
  int64_t snapshot_ = -1;  // of the last Start
};

}  // namespace crema::worker::test
