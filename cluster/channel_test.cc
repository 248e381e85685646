// Frames on a real connection, byte by byte: whole, in pieces, too large, cut off, and not a message.
#include "cluster/channel.h"

#include <gtest/gtest.h>

#include <thread>

#include "control.pb.h"
#include "support/hand_clock.h"
#include "support/message_of.h"
#include "support/settle.h"

namespace crema::cluster {
namespace {

using crema::test::kPatience;
using crema::test::messageOf;

struct Ends {
  Socket listener = Socket::listenOn("127.0.0.1", 0), bytes, served;
  Ends() {
    bytes = Socket::connectTo(listener.address(), Deadline::after(kPatience), nullptr);
    served = listener.accept(Deadline::after(kPatience), nullptr);
    served.setPeer("the other end");
  }
  void write(const std::string& text) const {
    bytes.writeAll(text.data(), text.size(), Deadline::after(kPatience), nullptr);
  }
};

control::ToMember kept() {
  control::ToMember m;
  m.mutable_kept();
  return m;
}

ErrorKind kindOfEnd(Channel& c, Deadline deadline) {
  control::ToMember m;
  try {
    c.receive(&m, deadline, nullptr);
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "a message came: " << m.ShortDebugString();
  return ErrorKind::kInternal;
}

TEST(Channel, AFrameIsItsSizeInLittleEndianAndTheMessage) {
  Ends ends;
  Channel channel(std::move(ends.served));
  control::ToMember m;
  m.mutable_abort()->set_story(std::string(300, 'x'));
  const std::string body = m.SerializeAsString();
  ASSERT_GT(body.size(), 256u);
  channel.send(m, Deadline::after(kPatience));
  std::string frame(4 + body.size(), '\0');
  ends.bytes.readAll(frame.data(), frame.size(), Deadline::after(kPatience), nullptr);
  EXPECT_EQ(frame[0], static_cast<char>(body.size() & 255));
  EXPECT_EQ(frame[1], static_cast<char>(body.size() >> 8));
  EXPECT_EQ(frame.substr(2, 2), std::string(2, '\0'));
  EXPECT_EQ(frame.substr(4), body);
}

TEST(Channel, PiecesBecomeOneMessageAndTwoInOneWriteStayTwo) {
  Ends ends;
  Channel channel(std::move(ends.served));
  const std::string body = kept().SerializeAsString(),
                    frame = static_cast<char>(body.size()) + std::string(3, '\0') + body;
  std::thread writer([&] {
    for (const char c : frame) {
      ends.write(std::string(1, c));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ends.write(frame + std::string(4, '\0'));  // and an empty message
  });
  control::ToMember m;
  for (const bool said : {true, true, false}) {
    channel.receive(&m, Deadline::after(kPatience), nullptr);
    EXPECT_EQ(m.has_kept(), said);
  }
  writer.join();
}

TEST(Channel, AFrameOf16MiBIsTheLargest) {
  Ends ends;
  Channel channel(std::move(ends.served));
  ends.write(std::string("\x01\x00\x00\x01", 4));
  control::ToMember m;
  EXPECT_EQ(messageOf([&] { channel.receive(&m, Deadline::after(kPatience), nullptr); }),
            "the other end announced a message of 16777217 bytes; refused");

  Ends largest;
  Channel takes(std::move(largest.served));
  control::ToCoordinator big;
  big.mutable_piece()->set_data(std::string((16u << 20) - 10, 'x'));
  ASSERT_EQ(big.ByteSizeLong(), 16u << 20);
  std::thread writer([&] { Channel(std::move(largest.bytes)).send(big, Deadline::after(kPatience)); });
  control::ToCoordinator came;
  EXPECT_EQ(messageOf([&] { takes.receive(&came, Deadline::after(kPatience), nullptr); }), "no error");
  writer.join();
  EXPECT_EQ(came.piece().data().size(), big.piece().data().size());
}

TEST(Channel, WhatIsNoMessageIsRefused) {
  Ends ends;
  Channel channel(std::move(ends.served));
  ends.write(std::string("\x03\x00\x00\x00", 4) + "\x0f\xff\xff");
  control::ToMember m;
  EXPECT_EQ(messageOf([&] { channel.receive(&m, Deadline::after(kPatience), nullptr); }),
            "the other end sent a message that cannot be read; refused");
}

TEST(Channel, AFrameThatIsCutOffEndsWithThePeer) {
  for (const std::string& part : {std::string(), std::string("\x09\x00", 2), std::string("\x09\x00\x00\x00half", 8)}) {
    Ends ends;
    Channel channel(std::move(ends.served));
    ends.write(part);
    ends.bytes.close();
    control::ToMember m;
    EXPECT_EQ(messageOf([&] { channel.receive(&m, Deadline::after(kPatience), nullptr); }),
              "recv from the other end: connection closed")
        << part.size();
  }
}

TEST(Channel, HalfAFrameDoesNotOutliveTheDeadline) {
  crema::test::HandClock clock;
  Ends ends;
  Channel channel(std::move(ends.served));
  ends.write(std::string("\x09\x00\x00\x00half", 8));
  std::atomic<bool> over{false};
  std::thread reader([&, deadline = Deadline::after(30)] {
    EXPECT_EQ(kindOfEnd(channel, deadline), ErrorKind::kTimeout);
    over = true;
  });
  clock.advance(29);
  crema::test::settle();
  EXPECT_FALSE(over);
  clock.advance(2);
  EXPECT_TRUE(crema::test::soon([&] { return over.load(); }));
  reader.join();
}

TEST(Channel, AnInterruptEndsASendToAPeerThatDoesNotReadAndTheNextSendEndsItsFrame) {
  Ends ends;
  Channel channel(std::move(ends.served)), reader(std::move(ends.bytes));
  control::ToCoordinator big;
  big.mutable_piece()->set_data(std::string(10u << 20, 'x'));
  Interrupt interrupt;
  std::atomic<int> whole{0};
  std::atomic<bool> over{false};
  std::string why;
  std::thread writer([&] {
    why = messageOf([&] {
      for (;; ++whole) channel.send(big, Deadline::after(kPatience), &interrupt);
    });
    over = true;
  });
  crema::test::settle();
  EXPECT_FALSE(over);
  interrupt.raise(Error(ErrorKind::kStopped, "the run is over"));
  EXPECT_TRUE(crema::test::soon([&] { return over.load(); }));
  writer.join();
  EXPECT_EQ(why, "the run is over");
  std::thread last([&] { channel.send(kept(), Deadline::after(kPatience)); });
  for (int i = 0; i <= whole; ++i) {
    control::ToCoordinator came;
    reader.receive(&came, Deadline::after(kPatience), nullptr);
    EXPECT_EQ(came.piece().data().size(), big.piece().data().size());
  }
  control::ToMember m;
  reader.receive(&m, Deadline::after(kPatience), nullptr);
  EXPECT_TRUE(m.has_kept());
  last.join();
  channel.send(kept(), Deadline::after(kPatience), &interrupt);  // there is room, so nothing waits
  reader.receive(&m, Deadline::after(kPatience), nullptr);
}

TEST(Channel, SeveralSendersDoNotTearFrames) {
  Ends ends;
  Channel channel(std::move(ends.served)), reader(std::move(ends.bytes));
  std::vector<std::thread> senders;
  for (int t = 0; t < 4; ++t)
    senders.emplace_back([&, t] {
      control::ToMember m;
      m.mutable_abort()->set_story(std::string(50000, static_cast<char>('a' + t)));
      for (int i = 0; i < 50; ++i) channel.send(m, Deadline::after(kPatience));
    });
  int came = 0;
  for (; came < 200; ++came) {
    control::ToMember m;
    reader.receive(&m, Deadline::after(kPatience), nullptr);
    const std::string& message = m.abort().story();
    ASSERT_EQ(message, std::string(50000, message.at(0)));
  }
  for (auto& t : senders) t.join();
  EXPECT_EQ(came, 200);
}

}  // namespace
}  // namespace crema::cluster
