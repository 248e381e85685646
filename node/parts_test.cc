// The parts of a node that touch the system: its port, and the memory of blocks on their way.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "base/fd_io.h"
#include "node/frames.h"
#include "node/held_port.h"
#include "node/kept.h"
#include "support/message_of.h"

namespace crema::node {
namespace {

using crema::test::messageOf;

Descriptor memoryWith(const std::string& bytes) {
  Descriptor memory(::memfd_create("test", MFD_CLOEXEC));
  EXPECT_TRUE(
      moveAll(bytes.size(), [&](size_t at) { return ::write(memory.get(), bytes.data() + at, bytes.size() - at); }));
  return memory;
}

std::string contentOf(int fd) {
  std::string bytes;
  ::lseek(fd, 0, SEEK_SET);
  EXPECT_TRUE(readToEnd(fd, &bytes));
  return bytes;
}

// Whether a server can have the port: with SO_REUSEADDR as gRPC's, or without.
bool canServe(int port, bool reuse) {
  const Descriptor s(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = reuse;
  ::setsockopt(s.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in a{};
  a.sin_family = AF_INET, a.sin_port = htons(static_cast<uint16_t>(port));
  return ::bind(s.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) == 0 && ::listen(s.get(), 1) == 0;
}

Descriptor listenerOnAny() {
  Descriptor s(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in a{};
  a.sin_family = AF_INET;
  EXPECT_EQ(::bind(s.get(), reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
  EXPECT_EQ(::listen(s.get(), 1), 0);
  return s;
}

TEST(HeldPort, IsTheProgramsAndNobodyElses) {
  HeldPort held(0);
  ASSERT_GT(held.number(), 0);
  EXPECT_TRUE(canServe(held.number(), true)) << "the program's server, while the port is held";
  EXPECT_FALSE(canServe(held.number(), false)) << "who does not ask for it gets no port that is in use";
  EXPECT_TRUE(canServe(held.number(), true)) << "and again";
  held.release();
  EXPECT_TRUE(canServe(held.number(), false));
}

// The kernel gives no held port to who asks for any: of 2,000 sockets none gets it.
TEST(HeldPort, IsNotGivenToWhoAsksForAny) {
  const HeldPort held(0);
  for (int i = 0; i < 2000; ++i) {
    const HeldPort other(0);
    ASSERT_NE(other.number(), held.number());
  }
}

// 200 starts beside one that takes every port that the kernel has.
TEST(HeldPort, IsThereForTheProgramWhateverOthersTake) {
  std::atomic<bool> over{false};
  std::thread thief([&] {
    std::deque<Descriptor> taken;
    while (!over) {
      taken.push_back(listenerOnAny());
      if (taken.size() > 500) taken.pop_front();
    }
  });
  for (int start = 0; start < 200; ++start) {
    const HeldPort held(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_FALSE(canServe(held.number(), false)) << "start " << start;
    EXPECT_TRUE(canServe(held.number(), true)) << "start " << start;
  }
  over = true;
  thief.join();
}

TEST(HeldPort, ATakenOneIsNamed) {
  const Socket listener = Socket::listenOn("127.0.0.1", 0);
  const int port = std::stoi(listener.address().substr(listener.address().rfind(':') + 1));
  const std::string m = messageOf([&] { const HeldPort held(port); });
  EXPECT_NE(m.find(fmt::format("cannot hold port {} for the program", port)), std::string::npos) << m;
  EXPECT_NE(m.find("TENSORFLOW_PORT"), std::string::npos) << m;
}

class FramesTest : public testing::Test {
 protected:
  FramesTest() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    a_ = std::make_unique<Frames>(Socket(ends[0], "b")), raw_ = ends[1];
    b_ = std::make_unique<Frames>(Socket(ends[1], "a"));
  }
  std::unique_ptr<Frames> a_, b_;
  int raw_;
};

TEST_F(FramesTest, CarryMessagesAndMemory) {
  wire::NodeRequest said, heard;
  said.mutable_put()->set_queue("input");
  const Descriptor memory = memoryWith("rows");
  a_->send(said, memory.get(), nullptr);
  said.mutable_put()->set_queue(std::string(1 << 20, 'x'));  // more than a socket holds at once
  std::thread sending([&] { a_->send(said, -1, nullptr); });
  Descriptor beside = b_->receive(&heard, nullptr);
  EXPECT_EQ(heard.put().queue(), "input");
  ASSERT_TRUE(beside.open());
  EXPECT_EQ(contentOf(beside.get()), "rows");
  beside = b_->receive(&heard, nullptr);
  EXPECT_EQ(heard.put().queue().size(), 1u << 20);
  EXPECT_FALSE(beside.open());
  sending.join();
}

TEST_F(FramesTest, WhatIsNoMessageEndsTheConnection) {
  wire::NodeRequest heard;
  const unsigned char large[] = {0xff, 0xff, 0xff, 0xff};
  ASSERT_EQ(::write(raw_, large, sizeof large), 4);
  EXPECT_EQ(messageOf([&] { (void)a_->receive(&heard, nullptr); }),
            "a message of 4294967295 bytes was announced; refused");
  const unsigned char wrong[] = {2, 0, 0, 0, 0x0a, 0x7f};
  ASSERT_EQ(::write(raw_, wrong, sizeof wrong), 6);
  EXPECT_EQ(messageOf([&] { (void)a_->receive(&heard, nullptr); }), "a message came that cannot be read");
  b_.reset();
  EXPECT_EQ(messageOf([&] { (void)a_->receive(&heard, nullptr); }), "connection closed");
}

TEST(Kept, EpochsAreFedAgainInTheirOrder) {
  Broker broker({"input"}, 1 << 20);
  Kept kept(testing::TempDir());
  bool withdrawn = false;
  const auto over = [&] { return withdrawn; };
  for (const char* bytes : {"first", "second"}) {
    Item item;
    item.block = std::make_shared<Descriptor>(memoryWith(bytes));
    item.rows = 3, item.first = 1, item.count = 2, item.bytes = std::strlen(bytes);
    kept.add("input", item);
  }
  for (int epoch = 0; epoch < 2; ++epoch) kept.replay("input", broker, over);
  for (const char* bytes : {"first", "second", "first", "second"}) {
    const auto item = broker.get("input", 0, {Deadline::after(0)});
    ASSERT_TRUE(item);
    EXPECT_EQ(contentOf(item->block->get()), bytes);
    EXPECT_EQ(item->rows, 3);
    EXPECT_EQ(item->first, 1);
    EXPECT_EQ(item->count, 2);
    EXPECT_EQ(item->bytes, std::strlen(bytes));
  }
  withdrawn = true;
  kept.replay("input", broker, over);
  withdrawn = false;
  kept.forget("input");
  kept.replay("input", broker, over);
  EXPECT_EQ(broker.count("input"), 0);
}

TEST(Kept, AFolderThatTakesNothingIsNamed) {
  Kept kept("/proc");
  Item item;
  item.block = std::make_shared<Descriptor>(memoryWith("rows"));
  item.bytes = 4;
  const std::string m = messageOf([&] { kept.add("input", item); });
  EXPECT_NE(m.find("cannot keep rows for later epochs in /proc"), std::string::npos) << m;
}

}  // namespace
}  // namespace crema::node
