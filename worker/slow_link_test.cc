// Three workers of one sum, one of whose links is slow or carries nothing: who waits for whom, with a real coordinator's
// heartbeats and a clock that the test moves.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/coordinator_ends.h"
#include "support/mesh_world.h"
#include "support/message_of.h"
#include "support/settle.h"
#include "worker/training.h"
#include "worker/watched_mesh.h"

namespace crema::worker {
namespace {

using crema::test::messageOf;
using crema::test::patience;
using crema::test::settle;

// Between who connects to address() and who listens at `to`: all that comes, and from hold() on as much as it is let.
class Link {
 public:
  explicit Link(std::string to) : to_(std::move(to)), thread_([this] { (void)messageOf([this] { run(); }); }) {}
  ~Link() {
    over_.raise(Error(ErrorKind::kStopped, "the test is over"));
    thread_.join();
  }
  std::string address() const { return listener_.address(); }
  void hold() {
    for (auto& d : ways_) d.room = 0;
  }
  void let(int64_t bytes) {  // each way
    for (auto& d : ways_) d.room += bytes;
  }

 private:
  struct Way {
    std::atomic<int64_t> room{int64_t{1} << 40};
    std::string held;
  };

  void run() {
    const Socket from = listener_.accept(patience(), &over_);
    const Socket to = Socket::connectTo(to_, patience(), &over_);
    for (; !over_.raised(); std::this_thread::sleep_for(std::chrono::milliseconds(1)))
      pass(from, to, ways_[0]), pass(to, from, ways_[1]);
  }
  static void pass(const Socket& from, const Socket& to, Way& way) {
    std::vector<char> some(1 << 16);
    while (const size_t n = from.readSome(some.data(), some.size())) way.held.append(some.data(), n);
    const auto most = std::min(way.held.size(), static_cast<size_t>(way.room));
    const size_t n = most == 0 ? 0 : to.writeSome(way.held.data(), most);
    way.held.erase(0, n), way.room -= static_cast<int64_t>(n);
  }

  const std::string to_;
  const Socket listener_ = Socket::listenOn("127.0.0.1", 0);
  std::array<Way, 2> ways_;
  Interrupt over_;
  std::thread thread_;
};

constexpr int64_t kHeader = sizeof(collective::FrameHeader) + 16;  // as it travels, in a packet of its own
constexpr size_t kPart = 4096;  // of one worker's floats that another one owns; all that waits fits into the sockets
constexpr size_t kCount = 3 * kPart / sizeof(float);

struct Worker {
  Worker(int w, const std::string& coordinator, const Secret& secret)
      : door("127.0.0.1", secret, "a test's port"), link(door.address()), number(w) {
    control::ToCoordinator::Hello hello;
    hello.set_version(CREMA_VERSION), hello.set_member(number), hello.set_job_digest(cluster::test::kJobDigest);
    hello.set_data_address(number == 1 ? link.address() : door.address());
    session = std::make_unique<cluster::Session>(
        cluster::SessionOptions{
            .coordinator = coordinator, .secret = secret, .member = "a worker", .stepTimeout = 10000},
        hello, interrupt);
  }
  // Returns the error that it ends with.
  std::string run(const Secret& secret, std::atomic<int>& connected, const std::atomic<bool>& begin, bool behind) {
    return messageOf([&] {
      session->ready("weights", "100 records");
      const auto start = session->waitForStart();
      collective::MeshOptions o;
      o.worker = start.member(), o.workers = o.ranks = start.peers_size();
      o.secret = secret, o.peers.assign(start.peers().begin(), start.peers().end()), o.door = &door;
      o.stepTimeout = 100, o.interrupt = &interrupt;
      mesh = std::make_unique<WatchedMesh>(o, *session);
      mesh->connectWatched();
      ++connected;
      while (!begin) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const auto mine = crema::test::gradientOf(number, kCount);
      waits.emplace(*mesh);
      if (behind) catchUp(crema::test::gradientOf(1, kCount));
      mesh->allReduce({mine.data()}, total.data(), static_cast<int64_t>(kCount), collective::Tag::gradient(0));
    });
  }

  // As trainers do: worker 2 takes a state from worker 1.
  void catchUp(std::vector<float> state) {
    float* at = number == 2 ? taken.data() : state.data();
    std::vector<collective::Bytes> of(3);
    of[1] = {reinterpret_cast<char*>(at), kCount * sizeof(float)};
    mesh->copy(
        of, [](int w) { return w == 2; }, collective::Tag::catchingUp(0, 0));
  }

  collective::PeerDoor door;
  Link link;
  const int number;
  Interrupt interrupt;
  std::unique_ptr<cluster::Session> session;
  std::unique_ptr<WatchedMesh> mesh;  // whose connections stay until all have ended
  // Also behind an error: in a run it is reported, and all begin anew, but here the others wait on, for their own limits.
  std::optional<collective::WaitingScope> waits;
  std::vector<float> total = std::vector<float>(kCount), taken = total;
  std::future<std::string> ended;
};

// Workers 1 and 2 share the link: who comes later connects, and worker 1's address is the link's.
class SlowLink : public testing::Test {
 protected:
  explicit SlowLink(bool behind = false) {
    options_.secret = secret_, options_.jobDigest = cluster::test::kJobDigest, options_.members = 3;
    options_.stepTimeout = 10000, options_.replacement = cluster::Replacement::kGoOn;
    c_ = std::make_unique<cluster::test::RunningCoordinator>(options_, std::make_unique<Training>(3, 3, "", false, 0));
    for (int w = 0; w < 3; ++w) workers_.push_back(std::make_unique<Worker>(w, c_->address(), secret_));
    for (auto& w : workers_)
      w->ended =
          std::async(std::launch::async, [this, &w, behind] { return w->run(secret_, connected_, begin_, behind); });
    EXPECT_TRUE(crema::test::soon([this] { return connected_ == 3; }));
    link().hold();
    begin_ = true;
    // Of a sum 0 has sent two parts and received two, the others are one part and the link short of that; of a state
    // 1 has sent all.
    EXPECT_TRUE(
        crema::test::soon([&] { return behind ? has(0, 2) && has(1, 3) : has(0, 4) && has(1, 3) && has(2, 3); }));
    beats();
  }
  ~SlowLink() override {
    for (auto& w : workers_) w->interrupt.raise(Error(ErrorKind::kStopped, "the test is over"));
  }
  Link& link() { return workers_[1]->link; }
  bool has(int w, int64_t parts) const {  // sent or received
    return workers_[static_cast<size_t>(w)]->session->transferred >= parts * static_cast<int64_t>(kPart);
  }
  // What all say is known to all.
  void beats() {
    for (int i = 0; i < 4; ++i) settle(), clock_.advance(1.25);
    settle();
  }
  void goOn(double seconds) {
    beats();
    clock_.advance(seconds - 5);
    settle();
  }
  // While the link carries nothing, and then a header, for longer than the limit together.
  void waitsAsLongAsItCarriesAnything() {
    for (const int64_t bytes : {int64_t{0}, kHeader}) {
      link().let(bytes);
      goOn(60);
      for (int w = 0; w < 3; ++w) ASSERT_FALSE(ended(w)) << error(w);
    }
    link().let(int64_t{1} << 30);
    ASSERT_TRUE(crema::test::soon([this] { return ended(0) && ended(1) && ended(2); }));
    for (int w = 0; w < 3; ++w) {
      EXPECT_EQ(error(w), "no error");
      EXPECT_EQ(workers_[static_cast<size_t>(w)]->total, crema::test::treeSum({0, 3}, kCount));
    }
  }
  bool ended(int w) const {
    return workers_[static_cast<size_t>(w)]->ended.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  std::string error(int w) { return workers_[static_cast<size_t>(w)]->ended.get(); }

  crema::test::HandClock clock_;
  const Secret secret_{cluster::test::kToken};
  cluster::CoordinatorOptions options_;
  std::unique_ptr<cluster::test::RunningCoordinator> c_;
  std::atomic<int> connected_{0};
  std::atomic<bool> begin_{false};
  std::vector<std::unique_ptr<Worker>> workers_;
};

// Worker 0 has all of the first half of the sum and waits for the second, which the others cannot begin: no byte of its own
// moves, and it would name both ends of a link that only is slow.
TEST_F(SlowLink, WhoHasNoPartInItWaitsAsLongAsItCarriesAnything) { waitsAsLongAsItCarriesAnything(); }

TEST_F(SlowLink, WhereItCarriesNothingEachNamesWhomItMisses) {
  goOn(80);
  for (int w = 0; w < 3; ++w) ASSERT_FALSE(ended(w)) << error(w);
  goOn(40);
  ASSERT_TRUE(crema::test::soon([this] { return ended(0) && ended(1) && ended(2); }));
  const auto misses = [](const std::string& story, int other) {
    return story.find("worker " + std::to_string(other) + " (") != std::string::npos;
  };
  const std::string zero = error(0), one = error(1), two = error(2);
  EXPECT_TRUE(misses(zero, 1) && misses(zero, 2)) << zero;
  EXPECT_TRUE(misses(one, 2) && !misses(one, 0)) << one;
  EXPECT_TRUE(misses(two, 1) && !misses(two, 0)) << two;
}

class SlowCatchingUp : public SlowLink {
 protected:
  SlowCatchingUp() : SlowLink(true) {}
};

// Worker 0, which has the state, waits in the first sum.
TEST_F(SlowCatchingUp, WhoIsNotBehindWaitsAsLongAsAStateComes) {
  waitsAsLongAsItCarriesAnything();
  EXPECT_EQ(workers_[2]->taken, crema::test::gradientOf(1, kCount));
}

}  // namespace
}  // namespace crema::worker
