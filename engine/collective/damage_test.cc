// Bytes between two workers that change on the way.
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "collective/mesh.h"
#include "support/hand_clock.h"
#include "support/mesh_world.h"
#include "support/message_of.h"

namespace crema::collective {
namespace {

using crema::test::messageOf;
using World = crema::test::MeshWorld;

// Carries one connection to an address and back, and flips a bit of what goes there.
class DamagingRelay {
 public:
  DamagingRelay(std::string to, size_t at) : to_(std::move(to)), at_(at), thread_([this] { carry(); }) {}
  ~DamagingRelay() { thread_.join(); }
  std::string address() const { return listener_.address(); }

 private:
  void carry() {
    const Socket here = listener_.accept(test::patience(), nullptr);
    const Socket there = Socket::connectTo(to_, test::patience(), nullptr);
    std::thread back([&] { pass(there, here, SIZE_MAX); });
    pass(here, there, at_);
    back.join();
  }
  static void pass(const Socket& from, const Socket& to, size_t at) {
    std::vector<char> part(100000);
    try {
      for (size_t passed = 0;;) {
        from.waitToRead(test::patience(), nullptr);
        const size_t n = from.readSome(part.data(), part.size());
        if (at >= passed && at < passed + n) part[at - passed] = static_cast<char>(part[at - passed] ^ 4);
        to.writeAll(part.data(), n, test::patience(), nullptr);
        passed += n;
      }
    } catch (const Error&) {  // both ends learn that the other has gone
      const_cast<Socket&>(to).shutdownBoth();
      const_cast<Socket&>(from).shutdownBoth();
    }
  }

  Socket listener_ = Socket::listenOn("127.0.0.1", 0);
  const std::string to_;
  const size_t at_;
  std::thread thread_;
};

// TCP has let it through. 1,000,000 floats: the bit is in the middle of a payload.
TEST(Mesh, AFlippedBitIsFoundAndNotLearnt) {
  for (const bool sealed : {false, true}) {
    World world(2, sealed);
    DamagingRelay relay(world.addresses[0], 1000000);
    world.addresses[0] = relay.address();
    const auto run = [&](int worker) {
      const auto mesh = std::make_unique<Mesh>(world.options(worker, 2));
      std::vector<float> v(1000000, 1.0f), total(1000000);
      return messageOf([&] { mesh->allReduce({v.data()}, total.data(), 1000000, Tag::gradient(1)); });
    };
    auto other = std::async(std::launch::async, [&] { return run(1); });
    const std::string found = run(0);
    EXPECT_NE(found.find("damaged on the way"), std::string::npos) << found;
    EXPECT_EQ(found.rfind("recv from worker 1", 0), 0u) << found;
    EXPECT_NE(other.get(), "no error");
  }
}

}  // namespace
}  // namespace crema::collective
