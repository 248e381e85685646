// Clients of a node that send anything: whoever has the token, and no sense, gets answers or the end of its connection.
#include "node/clients.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <optional>
#include <random>

#include "base/door.h"
#include "cluster/frame.h"
#include "support/hand_clock.h"
#include "support/message_of.h"

namespace crema::node {
namespace {

using crema::test::messageOf;

constexpr char kToken[] = "a token of these tests";

// Whether a socket that took nothing takes something within half a second.
bool settled(const Socket& socket) {
  pollfd room{socket.descriptor(), POLLOUT, 0};
  return ::poll(&room, 1, 500) > 0;
}

class ClientsTest : public testing::Test {
 protected:
  std::unique_ptr<Frames> connected() {
    const Deadline soon = Deadline::after(30);
    return std::make_unique<Frames>(connectThroughDoor(clients_.port(), kToken, "node", soon, nullptr, soon));
  }
  // The answer to a request; nothing when the node has ended the connection.
  static std::optional<wire::NodeAnswer> asked(Frames& frames, const wire::NodeRequest& request) {
    wire::NodeAnswer answer;
    try {
      frames.send(request, -1, nullptr);
      (void)frames.receive(&answer, nullptr);
    } catch (const Error&) {
      return std::nullopt;
    }
    return answer;
  }
  size_t number(size_t below) { return std::uniform_int_distribution<size_t>(0, below - 1)(random_); }
  std::string bytes(size_t most) {
    std::string some(number(most + 1), ' ');
    for (char& byte : some) byte = static_cast<char>(number(256));
    return some;
  }
  std::string queue() {
    const char* names[] = {"input", "output", "error", "nothing", ""};
    return number(20) == 0 ? bytes(30) : names[number(5)];
  }
  int64_t any() {
    const int64_t values[] = {0, 1, -1, 7, INT64_MAX, INT64_MIN, 1 << 20};
    return values[number(7)];
  }
  wire::NodeRequest request();

  std::mt19937 random_{14};
  Broker broker_{{"input", "output", "error"}, 1000};
  Kept kept_{testing::TempDir()}, nowhere_{"/proc"};
  HeldPort port_{0};
  std::atomic<int> failures_ = 0;
  Clients clients_{kToken,
                   "127.0.0.1",
                   {broker_, kept_, port_, [this](const std::string&) { ++failures_; }, [](const std::string&) {},
                    [](const std::string&) {}}};
};

// Any request but Fail, which ends the node's work as it is meant to.
wire::NodeRequest ClientsTest::request() {
  wire::NodeRequest r;
  const double seconds = number(8) == 0 ? -1.0 : 0.0;
  switch (number(12)) {
    case 0:
    case 1:
      r.mutable_put()->set_queue(queue()), r.mutable_put()->set_rows(any()), r.mutable_put()->set_timeout(seconds);
      r.mutable_put()->set_bytes(static_cast<uint64_t>(any())), r.mutable_put()->set_feed(number(4));
      if (number(3) == 0) r.mutable_put()->set_mark(static_cast<wire::Mark>(number(4)));
      if (number(2) == 0) {
        *r.mutable_put()->mutable_place() = wire::NodeRequest::Place();
        r.mutable_put()->mutable_place()->set_at(any()), r.mutable_put()->mutable_place()->set_call(any());
      }
      if (number(9) == 0) r.mutable_put()->set_keep(true);
      break;
    case 2:
    case 3:
      r.mutable_get()->set_queue(queue()), r.mutable_get()->set_feed(number(4)), r.mutable_get()->set_timeout(seconds);
      break;
    case 4:
      r.mutable_done()->set_queue(queue()), r.mutable_done()->set_bytes(static_cast<uint64_t>(any()));
      r.mutable_done()->set_count(any());
      break;
    case 5:
      r.mutable_join()->set_queue(queue()), r.mutable_join()->set_timeout(seconds);
      break;
    case 6:
      r.mutable_drop()->set_queue(queue());
      break;
    case 7:
      r.mutable_open();
      break;
    case 8:
      r.mutable_look()->set_key(bytes(20));
      break;
    case 9:
      r.mutable_set()->set_key(bytes(4)), r.mutable_set()->set_value(bytes(40));
      break;
    case 10:
      r.mutable_count()->set_queue(queue());
      break;
    default:
      break;  // nothing that is known
  }
  return r;
}

TEST_F(ClientsTest, AHundredThousandRequestsOfAnyKind) {
  auto frames = connected();
  int ended = 0;
  for (int i = 0; i < 100'000; ++i)
    if (!asked(*frames, request())) ++ended, frames = connected();
  EXPECT_EQ(ended, 0) << "what is a message is answered";
  wire::NodeRequest look;
  look.mutable_look()->set_key("state");
  EXPECT_TRUE(asked(*frames, look)->taken());
  EXPECT_EQ(failures_, 0);
}

// What a feeding task of another machine sends stays with it until there is room: two sockets hold a few megabytes.
TEST_F(ClientsTest, ABlockIsReadWhenThereIsRoomForIt) {
  constexpr uint64_t kBlock = 64u << 20;
  const Deadline soon = Deadline::after(30);
  Socket socket = connectThroughDoor(clients_.port(), kToken, "node", soon, nullptr, soon);
  ASSERT_TRUE(broker_.reserve("input", 1000, {Deadline::after(0)}));  // all that there is
  const auto sent = [&](const std::string& all, size_t from) {
    for (size_t at = from;;) {
      const size_t n = socket.writeSome(all.data() + at, std::min<size_t>(all.size() - at, 1 << 20));
      at += n;
      if (at == all.size() || (n == 0 && !settled(socket))) return at;
    }
  };
  wire::NodeRequest r;
  r.mutable_put()->set_queue("input"), r.mutable_put()->set_rows(3), r.mutable_put()->set_timeout(60);
  r.mutable_put()->set_bytes(kBlock), r.mutable_put()->set_follows(true);
  const std::string all = cluster::framed(r) + std::string(kBlock, 'x');
  ASSERT_EQ(::fcntl(socket.descriptor(), F_SETFL, O_NONBLOCK), 0);
  const size_t before = sent(all, 0);
  EXPECT_LT(before, kBlock / 2);
  broker_.release("input", 1000);
  for (size_t at = before; at < all.size();) {
    socket.waitToWrite(soon, nullptr);
    at += socket.writeSome(all.data() + at, all.size() - at);
  }
  Frames frames(std::move(socket));
  wire::NodeAnswer answer;
  (void)frames.receive(&answer, nullptr);
  EXPECT_TRUE(answer.taken()) << answer.failed();
  const auto item = broker_.get("input", 0, {Deadline::after(0)});
  ASSERT_TRUE(item);
  std::string back(kBlock, ' ');
  EXPECT_EQ(::pread(item->block->get(), back.data(), kBlock, 0), static_cast<ssize_t>(kBlock));
  EXPECT_EQ(back, std::string(kBlock, 'x'));
}

// The next request is read where it begins, though the block before it was not wanted.
TEST_F(ClientsTest, ABlockThatIsNotTakenIsSkipped) {
  const Deadline soon = Deadline::after(30);
  for (const bool unknown : {true, false}) {
    Socket socket = connectThroughDoor(clients_.port(), kToken, "node", soon, nullptr, soon);
    wire::NodeRequest r, look;
    r.mutable_put()->set_queue(unknown ? "nothing" : "input"), r.mutable_put()->set_rows(3);
    r.mutable_put()->set_bytes(300'000), r.mutable_put()->set_follows(true);
    look.mutable_look()->set_key("state");
    if (!unknown) broker_.set("state", "\"terminating\"");
    const std::string all = cluster::framed(r) + std::string(300'000, 'x') + cluster::framed(look);
    socket.writeAll(all.data(), all.size(), soon, nullptr);
    Frames frames(std::move(socket));
    wire::NodeAnswer put, state;
    (void)frames.receive(&put, nullptr);
    (void)frames.receive(&state, nullptr);
    EXPECT_EQ(put.failed().find("Queue 'nothing' not found") == 0, unknown) << put.failed();
    EXPECT_FALSE(put.taken());
    EXPECT_TRUE(state.taken());
  }
}

TEST_F(ClientsTest, AFeedingTaskThatGoesAmidABlockGivesItsRoomBack) {
  const Deadline soon = Deadline::after(30);
  {
    Socket socket = connectThroughDoor(clients_.port(), kToken, "node", soon, nullptr, soon);
    wire::NodeRequest r;
    r.mutable_put()->set_queue("input"), r.mutable_put()->set_rows(3), r.mutable_put()->set_timeout(60);
    r.mutable_put()->set_bytes(900), r.mutable_put()->set_follows(true);
    const std::string some = cluster::framed(r) + std::string(400, 'x');
    socket.writeAll(some.data(), some.size(), soon, nullptr);
    const auto full = [&] {
      return messageOf([&] { (void)broker_.reserve("input", 1000, {Deadline::after(0)}); }) != "no error";
    };
    while (!full()) {
      broker_.release("input", 1000);
      ASSERT_FALSE(soon.passed());
    }
  }
  EXPECT_TRUE(broker_.reserve("input", 1000, {soon}));
  EXPECT_EQ(broker_.count("input"), 0);
}

// Also where it has sent more than is read.
TEST_F(ClientsTest, WhoWaitsForRowsAndGoesIsNotWaitedFor) {
  auto frames = connected();
  wire::NodeRequest open, get;
  open.mutable_open();
  const uint64_t feed = asked(*frames, open)->feed();
  const auto closed = [&] {
    return messageOf([&] { (void)broker_.get("output", feed, {Deadline::after(0)}); }) != "no error";
  };
  EXPECT_FALSE(closed());
  get.mutable_get()->set_queue("input"), get.mutable_get()->set_timeout(3600);
  frames->send(get, -1, nullptr), frames->send(get, -1, nullptr);
  frames.reset();
  EXPECT_TRUE(test::soon(closed)) << "the end of its connection is seen";
}

TEST_F(ClientsTest, ANodeThatEndsWaitsForNobody) {
  const Deadline soon = Deadline::after(30);
  std::optional<Clients> clients(std::in_place, kToken, "127.0.0.1",
                                 Clients::Node{broker_, kept_, port_, [](const std::string&) {},
                                               [](const std::string&) {}, [](const std::string&) {}});
  Frames frames(connectThroughDoor(clients->port(), kToken, "node", soon, nullptr, soon));
  wire::NodeRequest get;
  get.mutable_get()->set_queue("input"), get.mutable_get()->set_timeout(3600);
  frames.send(get, -1, nullptr);
  pauseFor(0.2, nullptr);  // it waits
  clients.reset();
  EXPECT_FALSE(soon.passed());
}

// The program has them, and a repeated task could not bring them to later epochs.
TEST_F(ClientsTest, RowsThatCannotBeKeptAreAFailureOfTheNode) {
  Clients clients(kToken, "127.0.0.1",
                  {broker_, nowhere_, port_, [this](const std::string&) { ++failures_; }, [](const std::string&) {},
                   [](const std::string&) {}});
  const Deadline soon = Deadline::after(30);
  Socket socket = connectThroughDoor(clients.port(), kToken, "node", soon, nullptr, soon);
  wire::NodeRequest r;
  r.mutable_put()->set_queue("input"), r.mutable_put()->set_rows(3), r.mutable_put()->set_timeout(60);
  r.mutable_put()->set_bytes(90), r.mutable_put()->set_follows(true), r.mutable_put()->set_keep(true);
  const std::string all = cluster::framed(r) + std::string(90, 'x');
  socket.writeAll(all.data(), all.size(), soon, nullptr);
  Frames frames(std::move(socket));
  wire::NodeAnswer answer;
  (void)frames.receive(&answer, nullptr);
  EXPECT_EQ(answer.failed().rfind("cannot keep rows for later epochs in /proc: ", 0), 0u) << answer.failed();
  EXPECT_EQ(failures_, 1);
}

TEST_F(ClientsTest, BytesThatAreNoMessageEndTheirConnection) {
  for (int i = 0; i < 500; ++i) {
    const Deadline soon = Deadline::after(30);
    Socket socket = connectThroughDoor(clients_.port(), kToken, "node", soon, nullptr, soon);
    const std::string junk = bytes(200);
    try {
      socket.writeAll(junk.data(), junk.size(), soon, nullptr);
    } catch (const Error&) {
    }
  }
  wire::NodeRequest look;
  look.mutable_look()->set_key("state");
  EXPECT_TRUE(asked(*connected(), look)->taken());
}

TEST_F(ClientsTest, WithoutTheTokenNothingIsAnswered) {
  const Deadline soon = Deadline::after(2);
  EXPECT_NE(messageOf([&] {
              (void)connectThroughDoor(clients_.port(), "another token of 16+", "node", soon, nullptr, soon);
            }).find("token"),
            std::string::npos);
}

}  // namespace
}  // namespace crema::node
