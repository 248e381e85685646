#include "worker/publications.h"

#include <chrono>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace crema::worker {
namespace {

std::string nameOf(const wire::Event& event) {
  return event.has_model() ? "the final model"
                           : fmt::format("the snapshot of iteration {}", event.snapshot().iteration());
}

}  // namespace

Publications::Publications(bool byHost, double patience, const std::atomic<int64_t>& published,
                           std::function<void(const wire::Event&)> report, std::function<void()> waiting,
                           const Interrupt& interrupt)
    : byHost_(byHost),
      patience_(patience),
      published_(published),
      report_(std::move(report)),
      wait_(std::move(waiting)),
      interrupt_(interrupt) {}

void Publications::taken(const wire::Event& event) {
  if (!byHost_) return report_(event);
  if (waiting_.empty()) since_ = monotonicSeconds();
  waiting_.push_back(event);
}

void Publications::reportPublished() {
  for (; reported_ < published_ && !waiting_.empty(); ++reported_) {
    report_(waiting_.front());
    waiting_.pop_front();
    since_ = monotonicSeconds();
  }
  checkPatience();
}

void Publications::checkPatience() const {
  if (waiting_.empty() || monotonicSeconds() - since_ <= patience_) return;
  ioError(
      "{} was not published within {:.0f} s; is the file system of -model slow or gone? "
      "spark.crema.stepTimeout (a tenth of that) changes the limit",
      nameOf(waiting_.front()), patience_);
}

void Publications::waitForAll() {
  for (reportPublished(); !waiting_.empty(); reportPublished()) {
    interrupt_.check();
    wait_();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace crema::worker
