// A member of a run that says anything at all, to a real coordinator with another member that keeps to the protocol. The
// input decides what is said, byte by byte; every message is well-formed, so that what is damaged is its meaning.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/door.h"
#include "cluster/channel.h"
#include "cluster/coordinator.h"
#include "fuzz/formats.h"
#include "worker/joining.h"
#include "worker/training.h"

namespace crema::fuzz {

constexpr char kMemberToken[] = "the token of this run";
constexpr int kRunRanks = 4, kRunMembers = 2;

class Choices {
 public:
  explicit Choices(const std::string& bytes) : bytes_(bytes) {}
  bool more() const { return at_ < bytes_.size(); }
  int below(int limit) { return more() ? static_cast<unsigned char>(bytes_[at_++]) % limit : 0; }
  // Mostly a small number, else one at which arithmetic breaks.
  int64_t number() {
    static constexpr int64_t kEdges[] = {-2, 1000, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, int64_t{1} << 32};
    const int n = below(32);
    return n < 25 ? n - 1 : kEdges[n - 25];
  }
  double seconds() {
    static constexpr double kEdges[] = {
        0, 1e-3, 1, -1, 1e300, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
    return kEdges[below(static_cast<int>(std::size(kEdges)))];
  }
  std::string text() { return below(4) == 0 ? std::string(static_cast<size_t>(below(256)), '%') : "the same"; }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

inline control::ToCoordinator helloOf(int64_t member) {
  control::ToCoordinator m;
  auto* h = m.mutable_hello();
  h->set_version(CREMA_VERSION), h->set_member(static_cast<int>(member)), h->set_job_digest("job");
  h->set_host("h"), h->set_data_address("127.0.0.1:7");
  return m;
}

inline control::ToCoordinator readyNow() {
  control::ToCoordinator m;
  m.mutable_ready()->set_state_digest("the same"), m.mutable_ready()->set_records("the same");
  return m;
}

inline void drawHello(Choices& c, control::ToCoordinator& m) {
  m = helloOf(c.below(8) ? 0 : c.number());
  m.mutable_hello()->set_attempt(static_cast<int>(c.number()));
  m.mutable_hello()->set_stage_attempt(static_cast<int>(c.number()));
  m.mutable_hello()->set_task_seconds(c.seconds());
  m.mutable_hello()->set_brief(c.below(8) == 1);
  if (c.below(16) == 1) m.mutable_hello()->set_version(c.text());
  if (c.below(8) == 1) m.mutable_hello()->set_about(c.text());
}

inline void drawBeat(Choices& c, control::ToCoordinator& m) {
  auto* b = m.mutable_beat();
  b->set_iteration(c.number()), b->set_passes(c.number()), b->set_waiting(c.below(2)), b->set_transferred(c.number());
  b->set_compute_seconds(c.seconds()), b->set_preparing(c.number());
  b->mutable_spent()->set_passes(c.number()), b->mutable_spent()->set_pass_seconds(c.seconds());
  b->mutable_spent()->set_steps(c.number()), b->mutable_spent()->set_waited_seconds(c.seconds());
}

inline void drawReport(Choices& c, wire::Event& e) {
  switch (c.below(4)) {
    case 0:
      e.mutable_progress()->set_iteration(c.number());
      return;
    case 1:
      e.mutable_snapshot()->set_iteration(c.number());
      return;
    case 2:
      e.mutable_note();
      return;
    default:
      e.mutable_done()->set_iteration(c.number());
  }
}

inline control::ToCoordinator drawnMessage(Choices& c, int which) {
  control::ToCoordinator m;
  switch (which) {
    case 0:
      drawHello(c, m);
      break;
    case 1:
      m = readyNow();
      if (c.below(8) == 1) m.mutable_ready()->set_state_digest(c.text());
      if (c.below(8) == 1) m.mutable_ready()->set_records(c.text());
      break;
    case 2:
      drawBeat(c, m);
      break;
    case 3:
      drawReport(c, *m.mutable_report());
      break;
    case 4:
      m.mutable_failed()->set_story(c.text()), m.mutable_failed()->set_kind(c.below(2) ? "io" : c.text());
      m.mutable_failed()->set_iteration(c.number());
      break;
    case 5:
      m.mutable_finished()->set_iteration(c.number()), m.mutable_finished()->set_state_digest(c.text());
      break;
    case 6:
      m.mutable_piece()->set_data(c.text()), m.mutable_piece()->set_first(c.below(2));
      if (c.below(2)) m.mutable_piece()->set_size(static_cast<uint64_t>(c.number()));
      break;
    case 7:
      m.mutable_query()->set_wait(c.below(2)), m.mutable_query()->set_brief(c.below(2));
      break;
    default:
      m.mutable_paused()->set_generation(static_cast<uint32_t>(c.number()));
      m.mutable_paused()->set_iteration(c.number()), m.mutable_paused()->set_taken(c.number());
      m.mutable_paused()->set_story(c.below(2) ? "" : c.text()), m.mutable_paused()->set_ended(c.below(2));
      for (int n = c.below(4); n > 0; --n) m.mutable_paused()->add_unreached(static_cast<int>(c.number()));
  }
  return m;
}

inline std::unique_ptr<cluster::Channel> openChannel(const std::string& address) {
  const Deadline soon = Deadline::after(5);
  return std::make_unique<cluster::Channel>(
      connectThroughDoor(address, Secret(kMemberToken), "control", soon, nullptr, soon));
}

// What every member relies on when a generation begins; where it is not so, an internal error.
inline void checkStart(const control::ToMember::Start& s, uint32_t before) {
  try {
    worker::sharesOf(s, kRunRanks);
  } catch (const Error& e) {
    internal("no member could begin this generation: {}: {}", e.what(), s.ShortDebugString());
  }
  if (s.about_size() != s.number_size() || s.generation() <= before)
    internal("no member could begin this generation: {}", s.ShortDebugString());
}

// Member 1, which keeps to the protocol, and computes for a moment; returns when the run ends.
inline void playFaithfully(const std::string& address) {
  constexpr double kComputes = 0.05;
  const auto channel = openChannel(address);
  const Deadline end = Deadline::after(8);
  const auto say = [&](const control::ToCoordinator& m) { channel->send(m, end); };
  say(helloOf(1)), say(readyNow());
  uint32_t generation = 0;
  bool computes = false;
  for (Deadline done = end;;) {
    control::ToCoordinator answer;
    if (computes && done.passed()) {
      computes = false;
      answer.mutable_finished()->set_iteration(1), answer.mutable_finished()->set_state_digest("the same");
      say(answer);
    }
    if (!channel->readable() && computes) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    control::ToMember heard;
    channel->receive(&heard, end, nullptr);
    if (heard.has_abort() || heard.has_bye()) return;
    if (heard.has_start()) {
      checkStart(heard.start(), generation);
      generation = heard.start().generation(), computes = true, done = Deadline::after(kComputes);
    } else if (heard.has_regroup() && heard.regroup().generation() > generation) {
      computes = false;
      answer.mutable_paused()->set_generation(generation), answer.mutable_paused()->set_iteration(0);
      say(answer);
    }
  }
}

// Member 0. Its connection ends with the input, or earlier where the input says so.
inline void playAnything(const std::string& address, const std::string& bytes) {
  constexpr int kMessages = 9, kListens = kMessages, kConnectsAnew = kMessages + 1;
  Choices choices(bytes);
  auto channel = openChannel(address);
  for (int said = 0; choices.more() && said < 40; ++said) {
    const int which = choices.below(kConnectsAnew + 1);
    if (which == kConnectsAnew) {
      channel = openChannel(address);
    } else if (which == kListens) {
      control::ToMember heard;
      channel->receive(&heard, Deadline::after(0.02), nullptr);
    } else {
      channel->send(drawnMessage(choices, which), Deadline::after(5));
    }
  }
}

// The run ends within its deadlines, whatever member 0 says: well, or with an Error for the host.
inline void readMember(const std::string& bytes) {
  cluster::CoordinatorOptions o;
  o.secret = Secret(kMemberToken), o.members = kRunMembers, o.jobDigest = "job";
  o.joinTimeout = 0.2, o.stepTimeout = 3, o.replacementTimeout = 0.1;
  o.replacement = bytes.size() % 2 ? cluster::Replacement::kGoOn : cluster::Replacement::kWait;
  auto coordinator = std::make_unique<cluster::Coordinator>(
      o, std::make_unique<worker::Training>(kRunRanks, kRunMembers, "", false, 0.01), [](const wire::Event&) {});
  const std::string address = coordinator->address();
  std::string wrong;  // kInternal of the coordinator or of member 1
  const auto guarded = [&wrong](const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& e) {
      const bool judged = std::string(e.what()).find("ended with another state than") != std::string::npos;
      if (e.kind() == ErrorKind::kInternal && !judged) wrong = e.what();
    }
  };
  std::string its;
  std::thread run([&] {
    guarded([&] { coordinator->run(nullptr); });
    coordinator.reset();  // its port closes, as when its process ends
  });
  std::thread faithful([&] {
    try {
      playFaithfully(address);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::kInternal || e.kind() == ErrorKind::kTimeout) its = e.what();
    }
  });
  try {
    playAnything(address, bytes);
  } catch (const Error&) {  // the coordinator has ended its connection
  }
  run.join(), faithful.join();
  if (!wrong.empty() || !its.empty()) internal("{}{}", wrong, its);
}

// Lives of a member as bytes of Choices: it joins, is ready, hears of the start, computes, pauses, finishes; and one of
// anything.
inline std::vector<std::string> memberSeeds() {
  const std::string hello("\0\1\1\1\1\0\0\0", 8), ready("\1\0\0", 3), listens("\11", 1),
      beat("\2\3\4\0\1\1\4\1\4\1", 10), paused("\10\2\3\3\1\0\1\2", 8), finished("\5\2\1", 3);
  const std::string joins = hello + ready + listens + listens;
  std::string anything = joins;
  for (unsigned i = 0; i < 200; ++i) anything += static_cast<char>(i * i * 37 >> 3);
  return {joins + beat + beat + finished + listens, joins + beat + paused + listens + listens + beat + finished,
          joins + std::string("\12", 1) + joins + beat + std::string("\3\0\3", 3) + finished + listens, joins + beat,
          anything};
}

}  // namespace crema::fuzz
