// A real worker beside a coordinator that the test plays.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cluster/doorman.h"
#include "cluster/secret.h"
#include "collective/mesh.h"
#include "support/hand_clock.h"
#include "support/worker_runs.h"

namespace crema::test {

constexpr char kClosed[] = "127.0.0.1:1";  // a port at which nobody listens

class SurvivingWorker : public WorkerRuns {
 protected:
  void TearDown() override {
    if (!thread_.joinable()) return;
    control::ToMember m;
    m.mutable_abort()->set_story("enough"), m.mutable_abort()->set_kind("stopped");
    worker_->send(m, Deadline::after(1e6));
    thread_.join();
  }
  // Worker 1 of two, up to Ready.
  void begin(
      const std::function<train::Request()>& request = [] { return train::Request::kNone; },
      const Change& change = nullptr) {
    job_ = job(2);
    if (change) change(job_);
    job_.set_worker(1), job_.set_coordinator(doorman_.address()), job_.set_step_timeout(1000);
    job_.set_replacement("continue");
    rows_ = std::make_unique<worker::HostRows>(
        job_, false, [](const wire::Event&) {}, &interrupt_);
    if (send_) send_(*rows_);
    thread_ = std::thread([this, request] {
      error_ = messageOf([&] { worker::runWorker(job_, *rows_, {[](auto&) {}, request, leads_}, interrupt_); });
    });
    const auto hello = next();
    worker_ = hello.from, address_ = hello.message.hello().data_address();
    EXPECT_TRUE(next().message.has_ready());
  }
  // The next message that is no heartbeat and no report.
  cluster::Doorman::Incoming next() {
    for (;;) {
      std::optional<cluster::Doorman::Incoming> in;
      EXPECT_TRUE(soon([&] { return (in = doorman_.next(Deadline::after(0), nullptr)).has_value(); },
                       [&] { clock_.advance(0.05); }));
      if (!in) return {};
      if (in->message.has_beat() && beat_) beat_(in->message.beat());
      if (!in->message.has_beat() && !in->message.has_report()) return *in;
    }
  }
  // Of 20 rows for the first step 5 have come: until it waits for others in the pass of its second rank.
  bool waitsForRows() {
    int64_t passes = 0;
    return clock_.advanceUntil([&] {
      while (const auto in = doorman_.next(Deadline::after(0), nullptr))
        if (in->message.has_beat()) passes = in->message.beat().passes();
      return passes == 7;
    });
  }
  void start(uint32_t generation, const std::vector<int64_t>& iterations, const std::string& zero = kClosed) {
    control::ToMember m;
    auto* s = m.mutable_start();
    s->set_generation(generation), s->set_member(1);
    s->add_peers(zero), s->add_peers(address_);
    s->add_number(0), s->add_number(1);
    s->add_share_end(2), s->add_share_end(4);
    for (const int64_t i : iterations) s->add_iteration(i);
    worker_->send(m, Deadline::after(1e6));
  }
  // Its first generation beside a worker 0 that connects and says nothing.
  collective::Mesh startBesideZero() {
    zerosDoor_ = std::make_unique<collective::PeerDoor>("127.0.0.1", cluster::secretOf(job_), "worker 0's port");
    start(1, {-1, -1}, zerosDoor_->address());
    collective::MeshOptions o;
    o.worker = 0, o.workers = 2, o.ranks = kRanks, o.secret = cluster::secretOf(job_), o.door = zerosDoor_.get();
    return collective::Mesh(o);
  }
  void startAlone(uint32_t generation, int64_t iteration) {
    control::ToMember m;
    auto* s = m.mutable_start();
    s->set_generation(generation), s->set_member(0);
    s->add_peers(address_), s->add_number(1), s->add_share_end(4), s->add_iteration(iteration);
    worker_->send(m, Deadline::after(1e6));
  }

  HandClock clock_;
  cluster::Doorman doorman_{"127.0.0.1", 0, "the token of this cluster"};
  wire::Job job_;
  Interrupt interrupt_;
  std::shared_ptr<cluster::Channel> worker_;
  std::string address_, error_;
  std::unique_ptr<collective::PeerDoor> zerosDoor_;
  std::unique_ptr<worker::HostRows> rows_;
  std::function<void(worker::HostRows&)> send_;                    // before it begins
  std::function<void()> leads_;                                    // called by it
  std::function<void(const control::ToCoordinator::Beat&)> beat_;  // hears what next() leaves out
  std::thread thread_;
};

}  // namespace crema::test
