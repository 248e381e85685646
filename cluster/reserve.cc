#include "cluster/reserve.h"

#include "cluster/patience.h"

namespace crema::cluster {

bool Reserve::takes(const control::ToCoordinator::Hello& hello, const Member& member) {
  const auto& there = member.hello;
  return member.channel && (hello.stage_attempt() != there.stage_attempt() || hello.partition() != there.partition());
}

void Reserve::fill(const Roster& roster, double now) {
  for (size_t w = 0; w < roster.members.size() && !processes_.empty(); ++w) {
    const auto promised = promised_.find(w);
    if (roster.members[w].channel || roster.members[w].finished) continue;
    if (promised != promised_.end() && now - promised->second < patience::kPromise) continue;
    promised_[w] = now;
    control::ToMember message;
    message.mutable_place()->set_number(static_cast<int>(w));
    sendTo(*processes_.back(), message);
    processes_.pop_back();
  }
}

void Reserve::tellAll(const control::ToMember& message) const {
  for (const auto& process : processes_) sendTo(*process, message);
}

}  // namespace crema::cluster
