#include "cluster/roster.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "cluster/patience.h"

namespace crema::cluster {

void sendTo(Channel& channel, const control::ToMember& message) {
  try {
    channel.send(message, Deadline::after(patience::kSend));
  } catch (const Error&) {  // see above
  }
}

size_t Roster::place(const control::ToCoordinator::Hello& hello) const {
  if (hello.member() != -1) return static_cast<size_t>(hello.member());
  const auto earlier = [&](const Member& m) {
    return naming_.same && m.watched() && m.hello.attempt() != hello.attempt() && naming_.same(m.hello, hello);
  };
  if (auto m = std::find_if(members.begin(), members.end(), earlier); m != members.end())
    return static_cast<size_t>(m - members.begin());
  const auto unused = [](const Member& m) { return !m.hello.has_version(); };
  return static_cast<size_t>(std::find_if(members.begin(), members.end(), unused) - members.begin());
}

std::string Roster::refusal(const control::ToCoordinator::Hello& hello, const std::string& jobDigest) const {
  const size_t i = place(hello);
  const std::string& member = naming_.member;
  if (hello.version() != CREMA_VERSION)
    return fmt::format("version {} cannot join version {}; use one executable everywhere", hello.version(),
                       CREMA_VERSION);
  if (hello.member() == -1 && i >= members.size())
    return fmt::format("all {} {}s are here already: more have been started than the run has places", members.size(),
                       member);
  if (i >= members.size())
    return fmt::format("there is no {} {}; this run has {}s 0 to {}", member, hello.member(), member,
                       members.size() - 1);
  if (hello.job_digest() != jobDigest)
    return fmt::format("{} {} has a different job than the coordinator: start all with the same {}", member, i,
                       naming_.job);
  return "";
}

std::string Roster::occupied(size_t place) const {
  const Member& m = members[place];
  if (!m.channel && !m.finished) return "";
  return fmt::format("{} {} is already here (host {}, pid {})", naming_.member, number(place), m.hello.host(),
                     m.hello.pid());
}

int Roster::count(bool Member::*flag) const {
  int n = 0;
  for (const auto& m : members) n += m.*flag;
  return n;
}

int Roster::number(size_t member) const {
  const auto& hello = members[member].hello;
  return naming_.number && hello.has_version() ? naming_.number(static_cast<int>(member), hello)
                                               : static_cast<int>(member);
}

std::string Roster::describe(int member) const {
  const auto& hello = members[static_cast<size_t>(member)].hello;
  return fmt::format("{} {} ({}, host {}, pid {})", naming_.member, number(static_cast<size_t>(member)),
                     naming_.part(member, hello), hello.host(), hello.pid());
}

std::string Roster::during(int64_t step) const { return naming_.steps ? fmt::format(" in step {}", step) : ""; }

std::string Roster::missing() const {
  std::set<int> ready, joining;
  for (size_t i = 0; i < members.size(); ++i)
    if (members[i].channel || members[i].ready) (members[i].ready ? ready : joining).insert(number(i));
  std::vector<std::string> list;
  for (int i = 0; i < static_cast<int>(members.size()); ++i)
    if (!ready.count(i))
      list.push_back(fmt::format("{} {}{}", naming_.member, i, joining.count(i) ? " (joined, not ready)" : ""));
  return joined(list);
}

Error Roster::tooFew(size_t wanted, double waited, const std::string& remedy) const {
  return {ErrorKind::kTimeout,
          fmt::format("{} {}s wanted, {} here; waited {:.0f} s; missing: {}. Free that many executor slots, or {}",
                      wanted, member(), count(&Member::ready), waited, missing(), remedy)};
}

bool Roster::late(double since) const {
  return std::any_of(members.begin(), members.end(), [&](const Member& m) { return !m.ready && m.prepared < since; });
}

int Roster::find(const std::shared_ptr<Channel>& channel) const {
  for (size_t i = 0; i < members.size(); ++i)
    if (members[i].channel == channel) return static_cast<int>(i);
  return -1;
}

void Roster::tell(int member, const control::ToMember& message) const {
  const Member& m = members[static_cast<size_t>(member)];
  if (m.watched()) sendTo(*m.channel, message);
}

std::string Roster::list(const std::vector<int>& of) const {
  std::string text = naming_.member + (of.size() == 1 ? " " : "s ");
  for (size_t i = 0; i < of.size(); ++i)
    text += (i == 0 ? "" : i + 1 == of.size() ? " and " : ", ") + std::to_string(number(static_cast<size_t>(of[i])));
  return text;
}

bool Roster::watches(const std::shared_ptr<Channel>& channel) const {
  return std::any_of(members.begin(), members.end(),
                     [&](const Member& m) { return m.watched() && m.channel == channel; });
}

bool Roster::hears(double since) const {
  return std::any_of(members.begin(), members.end(), [&](const Member& m) { return m.watched() && m.heard >= since; });
}

void Roster::tellAll(const control::ToMember& message) const {
  for (const Member& m : members)
    if (m.watched()) sendTo(*m.channel, message);
}

control::ToMember Roster::here(bool complete, bool brief) const {
  control::ToMember message;
  for (const auto& m : members)
    if (!brief && m.hello.has_version()) message.mutable_members()->add_about(m.hello.about());
  message.mutable_members()->set_complete(complete);
  return message;
}

int64_t Roster::latestStep() const {
  int64_t step = shown;
  for (const auto& m : members) step = std::max(step, m.beat.iteration());
  return step;
}

}  // namespace crema::cluster
