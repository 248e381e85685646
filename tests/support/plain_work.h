// A work of no kind in particular, for tests of what the coordinator does for any.
#pragma once
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "cluster/work.h"

namespace crema::cluster::test {

class PlainWork : public Work {
 public:
  Naming naming() const override {
    return {"node", "program",
            [](int, const control::ToCoordinator::Hello& hello) { return "at " + hello.data_address(); }};
  }
  std::string remedyForMissing() const override { return "ask for fewer nodes"; }
  std::string remedyForLoss() const override { return "run it again"; }
  void checkStart(const Roster& roster) const override {
    if (roster.members[0].records == "too few") badData("there is too little to do");
  }
  void checkEnd(const Roster& roster) const override {
    if (roster.members[1].digest == "wrong") badData("{} is wrong", roster.describe(1));
  }
  void complete(const Roster& roster, wire::Event& report) const override {
    if (report.has_progress()) report.mutable_progress()->set_max_iter(roster.count(&Member::finished));
  }
  bool take(const control::ToCoordinator::Piece& piece, const std::string& sender) override {
    if (piece.data() == "refused") badData("{} sent what nobody wants", sender);
    while (piece.data() == "slow" && diskStands) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return piece.has_size();
  }

  static inline std::atomic<bool> diskStands{false};
};

}  // namespace crema::cluster::test
