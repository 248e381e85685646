#include "cluster/reports.h"

#include "cluster/patience.h"

namespace crema::cluster {

void Reports::listening(const std::string& address) {
  wire::Event event;
  event.mutable_listening()->set_address(address);
  emit_(event);
}

void Reports::joined(int member, const Roster& roster) {
  const auto& hello = roster.members[static_cast<size_t>(member)].hello;
  const auto here = std::count_if(roster.members.begin(), roster.members.end(),
                                  [](const Member& m) { return m.hello.has_version(); });
  wire::Event event;
  auto* j = event.mutable_joined();
  j->set_worker(member), j->set_about(hello.about()), j->set_host(hello.host());
  j->set_have(static_cast<int>(here)), j->set_want(static_cast<int>(roster.members.size()));
  j->set_task_seconds(hello.task_seconds()), j->set_unpack_seconds(hello.unpack_seconds());
  if (hello.has_task()) j->set_task(hello.task()), j->set_executor(hello.executor());
  emit_(event);
}

void Reports::preparing(const Roster& roster, double now) {
  if (now - lastPreparing_ < patience::kPreparing) return;
  lastPreparing_ = now;
  wire::Event event;
  event.mutable_preparing()->set_ready(roster.count(&Member::ready));
  event.mutable_preparing()->set_want(static_cast<int>(roster.members.size()));
  emit_(event);
}

void Reports::started() {
  wire::Event event;
  event.mutable_started();
  emit_(event);
}

void Reports::lost(int member, int attempt, const std::string& story, bool replaced, bool last, ErrorKind kind) {
  wire::Event event;
  event.mutable_lost()->set_worker(member), event.mutable_lost()->set_attempt(attempt);
  event.mutable_lost()->set_story(story);
  event.mutable_lost()->set_replaced(replaced), event.mutable_lost()->set_silent(kind == ErrorKind::kTimeout);
  event.mutable_lost()->set_asked(kind == ErrorKind::kStopped), event.mutable_lost()->set_last(last);
  emit_(event);
}

void Reports::wentOn(uint32_t generation, size_t members, int64_t iteration, double now) {
  if (since_ < 0) return;
  wire::Event event;
  auto* r = event.mutable_regrouped();
  r->set_generation(generation), r->set_workers(static_cast<int>(members));
  r->set_iteration(iteration), r->set_pause(now - since_);
  if (seen_ >= 0) r->set_seen(now - seen_);
  for (const int w : came_) r->add_came(w);
  if (!shares_.empty()) r->set_shares(shares_);
  since_ = seen_ = -1;
  came_.clear();
  emit_(event);
}

void Reports::forward(wire::Event event, const Roster& roster, const Work& work) {
  if (event.has_test() && !tests_.emplace(event.test().iteration(), event.test().net()).second) return;
  if (event.has_snapshot()) snapshot_ = std::max<int64_t>(snapshot_, event.snapshot().iteration());
  work.complete(roster, event);
  emit_(event);
}

}  // namespace crema::cluster
