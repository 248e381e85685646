#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/handshake.h"
#include "base/random.h"
#include "collective/mesh.h"
#include "collective/tree.h"
#include "support/hand_clock.h"
#include "support/mesh_world.h"

namespace crema::collective {
namespace {

TEST(Tree, WorkersHoldRunsOfRanksAndWholeSubtreesCoverThem) {
  for (int ranks = 1; ranks <= 17; ++ranks)
    for (int workers = 1; workers <= ranks; ++workers) {
      int next = 0;
      for (int w = 0; w < workers; ++w) {
        const RankRange r = ranksOfWorker(w, workers, ranks);
        EXPECT_EQ(r.lo, next);
        EXPECT_GT(r.hi, r.lo);
        for (int i = r.lo; i < r.hi; ++i) EXPECT_EQ(i * workers / ranks, w);
        next = r.hi;
        int at = r.lo;
        for (const RankRange& node : wholeSubtrees(r, ranks)) {
          EXPECT_EQ(node.lo, at);
          at = node.hi;
        }
        EXPECT_EQ(at, r.hi);
      }
      EXPECT_EQ(next, ranks);
    }
  EXPECT_EQ(wholeSubtrees({0, 4}, 8).size(), 1u);
  EXPECT_THROW(ranksOfWorker(0, 3, 2), Error);
}

using World = crema::test::MeshWorld;

std::string outcome(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return std::string(name(e.kind())) + ": " + e.what();
  }
  return "ok";
}

TEST(Mesh, UnauthenticatedClientsAndGarbageChangeNothing) {
  World world(2);
  auto first = std::async(std::launch::async, [&] { return std::make_unique<Mesh>(world.options(0, 2)); });
  {
    Socket garbage = Socket::connectTo(world.addresses[0], test::patience(), nullptr);
    garbage.writeAll("GET / HTTP/1.1\r\n\r\n and much more than a proof would need, to be sure of it................",
                     90, test::patience(), nullptr);
    Socket wrong = Socket::connectTo(world.addresses[0], test::patience(), nullptr);
    EXPECT_NE(outcome([&] { proveAsClient(wrong, "another token 16", "data", test::patience(), nullptr); }), "ok");
    Socket silent = Socket::connectTo(world.addresses[0], test::patience(), nullptr);
    auto second = std::async(std::launch::async, [&] { return std::make_unique<Mesh>(world.options(1, 2)); });
    EXPECT_NO_THROW(first.get());
    EXPECT_NO_THROW(second.get());
  }
}

// Idle connections stand before the port when the others come, and more come while the mesh is being made.
TEST(Mesh, AHundredIdleClientsCostNothing) {
  World world(3);
  std::vector<Socket> idle;
  for (int i = 0; i < 300; ++i)
    idle.push_back(Socket::connectTo(world.addresses[static_cast<size_t>(i % 3)], test::patience(), nullptr));
  std::atomic<bool> over{false};
  std::thread scanner([&] {
    while (!over) (void)Socket::connectTo(world.addresses[0], test::patience(), nullptr);
  });
  const double before = monotonicSeconds();
  std::vector<std::future<std::unique_ptr<Mesh>>> workers;
  for (int w = 0; w < 3; ++w)
    workers.push_back(std::async(std::launch::async, [&, w] {
      if (w > 0) std::this_thread::sleep_for(std::chrono::milliseconds(300 * w));
      return std::make_unique<Mesh>(world.options(w, 3));
    }));
  std::vector<std::unique_ptr<Mesh>> meshes;  // kept until all are connected
  for (auto& w : workers) EXPECT_NO_THROW(meshes.push_back(w.get()));
  over = true;
  scanner.join();
  EXPECT_LT(monotonicSeconds() - before,
            test::kPatience);  // a hundred stand at each port, 5 s for each if one waited for them
  EXPECT_GT(world.doors[0]->refused(), 0);
}

// A client that was accepted stays connected, however many unauthenticated ones connect.
TEST(Mesh, WhoeverWasLetInStays) {
  const std::string token = "a token of the test";
  Door door(Socket::listenOn("127.0.0.1", 0), token, "data", "the port", [](Socket s, const Interrupt& closing) {
    char c = 0;
    s.readAll(&c, 1, test::patience(), &closing);
    s.writeAll(&c, 1, test::patience(), &closing);
  });
  std::atomic<bool> over{false};
  std::vector<std::thread> crowd;
  for (int i = 0; i < 2; ++i)
    crowd.emplace_back([&] {
      std::vector<Socket> silent;
      while (!over) {
        silent.push_back(Socket::connectTo(door.address(), test::patience(), nullptr));
        if (silent.size() > 200) silent.erase(silent.begin(), silent.begin() + 100);
      }
    });
  int in = 0;
  const Deadline enough = Deadline::after(10), longest = test::patience();
  while (in < 200 && !(in > 0 ? enough : longest).passed()) {
    std::optional<Socket> s;
    const Deadline soon = test::patience();
    outcome([&] { s = connectThroughDoor(door.address(), token, "data", soon, nullptr, soon); });
    if (!s) continue;  // evicted each time, with an error
    ++in;
    char c = 'x';
    EXPECT_EQ(outcome([&] {
                s->writeAll(&c, 1, test::patience(), nullptr);
                s->readAll(&c, 1, test::patience(), nullptr);
              }),
              "ok");
  }
  over = true;
  for (auto& t : crowd) t.join();
  EXPECT_GT(in, 0);
}

// A connection of an abandoned attempt is not taken for one of the next.
TEST(Mesh, DeadConnectionsArePassedOver) {
  const std::string token = "a token of the test";
  PeerDoor door("127.0.0.1", token, "the port");
  const auto connect = [&] {
    const Deadline soon = test::patience();
    Socket s = connectThroughDoor(door.address(), token, "data", soon, nullptr, soon);
    const FrameHeader hello{FrameHeader::kMagic, 1, FrameHeader::kHello, 2, 0, 0};
    s.writeAll(&hello, sizeof hello, soon, nullptr);
    return s;
  };
  (void)connect();  // closed at once
  EXPECT_FALSE(door.take(2, 1, Deadline::after(0.5), nullptr));
  std::thread later([&] {
    const Socket s = connect();
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  });
  EXPECT_TRUE(door.take(2, 1, test::patience(), nullptr));
  later.join();
}

TEST(Mesh, MissingWorkerIsNamedInTime) {
  World world(3);
  auto o = world.options(0, 3);
  o.connectTimeout = 0.5;
  const double before = monotonicSeconds();
  const std::string m = outcome([&] { Mesh mesh(o); });
  EXPECT_LT(monotonicSeconds() - before, test::kPatience);
  EXPECT_NE(m.find("timeout"), std::string::npos) << m;
}

// Whom `body` cannot reach, and whether all that it knows is that a connection has ended.
std::pair<std::vector<int>, bool> lostIn(const std::function<void()>& body) {
  try {
    body();
  } catch (const LostPeers& e) {
    return {e.workers(), e.ended()};
  }
  return {};
}

// Two closed ports among three: each has the whole time, and the third one is not blamed.
TEST(Mesh, WorkersWhosePortsAreClosedAreAllNamed) {
  World world(4);
  for (const int w : {0, 2}) world.doors[static_cast<size_t>(w)].reset();
  auto o = world.options(3, 4);
  o.connectTimeout = 0.5;
  const double before = monotonicSeconds();
  const auto lost = lostIn([&] { Mesh mesh(o); });
  EXPECT_LT(monotonicSeconds() - before, test::kPatience);
  EXPECT_EQ(lost, std::pair(std::vector({0, 2}), false));
}

// Else whoever's time is over first would be the only one who says it, and it alone might be blamed.
TEST(Mesh, WhoIsAskedToLeaveNamesThoseThatItHasTriedForLong) {
  World world(3);
  world.doors[1].reset();
  Interrupt interrupt;
  auto o = world.options(2, 3);
  o.interrupt = &interrupt, o.connectTimeout = 2;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
    interrupt.raise(Error(ErrorKind::kPeer, "leave"));
  });
  EXPECT_EQ(lostIn([&] { Mesh mesh(o); }), std::pair(std::vector({1}), false));
  later.join();
}

// The interrupt's error stays what it is: it says nothing of another worker.
TEST(Mesh, AnInterruptIsNoLostPeer) {
  World world(2);
  world.doors[0].reset();
  Interrupt interrupt;
  auto o = world.options(1, 2);
  o.interrupt = &interrupt;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    interrupt.raise(Error(ErrorKind::kPeer, "leave"));
  });
  EXPECT_EQ(outcome([&] { Mesh mesh(o); }), "peer: leave\n  while worker 1 was connecting to the 1 others");
  later.join();
}

TEST(Mesh, AllThatAreLateAreNamed) {
  World world(3);
  std::vector<std::future<std::unique_ptr<Mesh>>> others;
  for (const int w : {1, 2})
    others.push_back(std::async(std::launch::async, [&, w] { return std::make_unique<Mesh>(world.options(w, 3)); }));
  auto o = world.options(0, 3);
  o.stepTimeout = 0.3;
  Mesh mesh(o);
  std::vector<std::unique_ptr<Mesh>> silent;
  for (auto& other : others) silent.push_back(other.get());
  std::vector<float> v(100), total(100);
  const auto lost = lostIn([&] { mesh.allReduce({v.data()}, total.data(), 100, Tag::gradient(7)); });
  EXPECT_EQ(lost, std::pair(std::vector({1, 2}), false));
  silent[0].reset();
  o.stepTimeout = 10;
  EXPECT_EQ(lostIn([&] { mesh.allReduce({v.data()}, total.data(), 100, Tag::gradient(7)); }),
            std::pair(std::vector({1}), true));
}

TEST(Mesh, LostWorkerEndsTheWait) {
  World world(2);
  auto partner = std::async(std::launch::async, [&] { return std::make_unique<Mesh>(world.options(1, 2)); });
  Mesh mesh(world.options(0, 2));
  partner.get().reset();  // closes its sockets
  std::vector<float> v(100000), total(100000);
  const std::string m = outcome([&] { mesh.allReduce({v.data()}, total.data(), 100000, Tag::gradient(7)); });
  EXPECT_NE(m.find("worker 1"), std::string::npos) << m;
  EXPECT_EQ(m.rfind("peer", 0), 0u) << m;
}

TEST(Mesh, FramesOfAnotherStepAreRefused) {
  World world(2);
  auto partner = std::async(std::launch::async, [&] {
    Mesh mesh(world.options(1, 2));
    std::vector<float> v(100), total(100);
    return outcome([&] { mesh.allReduce({v.data()}, total.data(), 100, Tag::gradient(8)); });
  });
  Mesh mesh(world.options(0, 2));
  std::vector<float> v(100), total(100);
  const std::string m = outcome([&] { mesh.allReduce({v.data()}, total.data(), 100, Tag::gradient(7)); });
  EXPECT_NE(m.find("a frame that does not fit"), std::string::npos) << m;
  EXPECT_NE(partner.get(), "ok");
}

}  // namespace
}  // namespace crema::collective
