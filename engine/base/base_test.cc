#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <map>
#include <new>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/handshake.h"
#include "base/random.h"
#include "base/sha256.h"
#include "base/socket.h"
#include "support/hand_clock.h"
#include "support/shared_data.h"

namespace crema {
namespace {

TEST(Error, GivesTheMessageAndItsFramesFromTheInside) {
  try {
    inside([] { return std::string("in net 'A'"); },
           [] { inside([] { return std::string("in layer 'b'"); }, [] { invalid("kernel {} is too large", 11); }); });
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "kernel 11 is too large\n  in layer 'b'\n  in net 'A'");
    EXPECT_EQ(e.kind(), ErrorKind::kInvalid);
  }
}

TEST(Error, KindsHaveNames) {
  for (const auto k : {ErrorKind::kInvalid, ErrorKind::kData, ErrorKind::kIo, ErrorKind::kPeer, ErrorKind::kTimeout,
                       ErrorKind::kStopped, ErrorKind::kInternal})
    EXPECT_EQ(kindNamed(name(k)), k) << name(k);
  EXPECT_EQ(kindNamed("something new"), ErrorKind::kPeer);
}

TEST(File, HadoopsNamesOfLocalFiles) {  // the cases of StorageSuite.scala
  for (const auto& [uri, path] : std::map<std::string, std::string>{{"file:a/b", "a/b"},
                                                                    {"file:/a/b", "/a/b"},
                                                                    {"file:///a/b", "/a/b"},
                                                                    {"file://host/a/b", "/a/b"},
                                                                    {"file://host", ""},
                                                                    {"/a/b", "/a/b"},
                                                                    {"a/file:b", "a/file:b"},
                                                                    {"hdfs://n/a", "hdfs://n/a"}})
    EXPECT_EQ(localPath(uri), path) << uri;
}

TEST(Error, IsMadeOfAnyException) {
  const auto made = [](const auto& thrown) { return asError(std::make_exception_ptr(thrown)); };
  Error framed(ErrorKind::kData, "damaged");
  framed.addFrame("in net 'A'");
  const Error same = made(framed);
  EXPECT_EQ(same.kind(), ErrorKind::kData);
  EXPECT_STREQ(same.what(), "damaged\n  in net 'A'");
  EXPECT_EQ(same.frames(), framed.frames());
  EXPECT_EQ(made(Unreachable("nobody")).kind(), ErrorKind::kPeer);
  EXPECT_EQ(made(std::bad_alloc()).kind(), ErrorKind::kIo);
  EXPECT_NE(made(std::bad_alloc()).message().find("out of memory; use a smaller batch_size"), std::string::npos);
  EXPECT_EQ(made(std::system_error(EAGAIN, std::generic_category())).kind(), ErrorKind::kIo);
  EXPECT_TRUE(
      made(std::system_error(EAGAIN, std::generic_category())).message().starts_with("cannot start a thread: "));
  EXPECT_EQ(made(std::out_of_range("index 7")).kind(), ErrorKind::kInternal);
  EXPECT_STREQ(made(std::out_of_range("index 7")).what(), "index 7");
  EXPECT_EQ(made(7).kind(), ErrorKind::kInternal);
}

TEST(Random, PhiloxKnownAnswer) {  // the published vector of Philox4x32-10 for counter 0 and key 0
  const auto r = r123::Philox4x32()({{0, 0, 0, 0}}, {{0, 0}});
  EXPECT_EQ(r[0], 0x6627e8d5u);
  EXPECT_EQ(r[3], 0x9b00dbd8u);
}

TEST(Random, EveryPartOfTheKeyCounts) {
  RandomKey key;
  const RandomStream a(key), b(key);
  EXPECT_EQ(a.block(7), b.block(7));
  key.rank = 1;
  EXPECT_NE(RandomStream(key).block(7), a.block(7));
  key.rank = 0, key.step = 1;
  EXPECT_NE(RandomStream(key).block(7), a.block(7));
  key.step = 0, key.purpose = RandomPurpose::kDropout;
  EXPECT_NE(RandomStream(key).block(7), a.block(7));
}

TEST(Random, MomentsAndRanges) {
  const RandomStream r{RandomKey{}};
  const int n = 200000;
  double mean = 0, square = 0, gaussian = 0, gaussianSquare = 0;
  std::set<uint64_t> seen;
  for (int i = 0; i < n; ++i) {
    const double u = r.uniform(static_cast<uint64_t>(i)), g = r.gaussian(static_cast<uint64_t>(i));
    ASSERT_TRUE(u >= 0 && u < 1);
    mean += u, square += u * u, gaussian += g, gaussianSquare += g * g;
    seen.insert(r.below(static_cast<uint64_t>(i), 7));
  }
  EXPECT_NEAR(mean / n, 0.5, 4 * std::sqrt(1 / 12.0 / n));
  EXPECT_NEAR(square / n, 1 / 3.0, 0.003);
  EXPECT_NEAR(gaussian / n, 0, 4 / std::sqrt(static_cast<double>(n)));
  EXPECT_NEAR(gaussianSquare / n, 1, 0.02);
  EXPECT_EQ(seen.size(), 7u);
}

TEST(File, AppearsWholeOrNotAtAll) {
  test::TemporaryFolder folder;
  const std::string path = folder.file("a");
  writeFileAtomically(path, "one");
  writeFileAtomically(path, "two");
  EXPECT_EQ(readFile(path), "two");
  EXPECT_THROW(writeFileAtomically(folder.file("no/such/a"), "x"), Error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(File, FullDiskLeavesNothingBehind) {
  if (!fileExists("/dev/full")) GTEST_SKIP() << "SKIPPED: no /dev/full";
  test::TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/full", folder.file("full"));
  try {
    writeFileAtomically(folder.file("full"), std::string(100000, 'x'));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kIo);
    EXPECT_NE(std::string(e.what()).find("No space left on device"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("free some space"), std::string::npos) << e.what();
  }
}

TEST(Sha256, KnownAnswer) {
  EXPECT_EQ(sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

using test::kPatience, test::patience;

struct Pair {
  Socket listener = Socket::listenOn("127.0.0.1", 0), client, server;
  Pair() {
    std::thread t([&] { client = Socket::connectTo(listener.address(), patience(), nullptr); });
    server = listener.accept(patience(), nullptr);
    t.join();
  }
};

TEST(Socket, DeadlineEndsAWait) {
  Pair p;
  char c = 0;
  const double before = monotonicSeconds();
  try {
    p.server.readAll(&c, 1, Deadline::after(0.2), nullptr);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kTimeout);
  }
  EXPECT_LT(monotonicSeconds() - before, kPatience);
}

TEST(Socket, InterruptEndsAWaitWithItsReason) {
  Pair p;
  Interrupt interrupt;
  std::thread t([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    interrupt.raise(Error(ErrorKind::kStopped, "because"));
  });
  char c = 0;
  try {
    p.server.readAll(&c, 1, patience(), &interrupt);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "because");
  }
  t.join();
}

TEST(Socket, NamesTheLostPeer) {
  Pair p;
  p.client.close();
  char c = 0;
  try {
    p.server.readAll(&c, 1, patience(), nullptr);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kPeer);
    EXPECT_NE(std::string(e.what()).find("127.0.0.1"), std::string::npos);
  }
}

TEST(Socket, RefusesNames) { EXPECT_THROW(Socket::listenOn("localhost", 0), Error); }

std::string handshake(const std::string& clientToken, const std::string& serverToken, const std::string& purpose) {
  Pair p;
  std::string client = "ok", server = "ok";
  std::thread t([&] {
    try {
      proveAsClient(p.client, clientToken, purpose, patience(), nullptr);
    } catch (const Error& e) {
      client = name(e.kind());
    }
  });
  try {
    proveAsServer(p.server, serverToken, "data", patience(), nullptr);
  } catch (const Error& e) {
    server = name(e.kind());
    p.server.close();
  }
  t.join();
  return client + " " + server;
}

TEST(Socket, APeerThatHasGoneIsSeen) {
  Pair p;
  EXPECT_FALSE(p.server.peerGone());
  p.client.writeAll("ab", 2, patience(), nullptr);
  p.client.close();
  char two[2];
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(p.server.peerGone()) << "there is still something to read";
    p.server.readAll(two, 1, patience(), nullptr);
  }
  EXPECT_TRUE(test::soon([&] { return p.server.peerGone(); }));
}

// A door without room refuses a client before the client takes its proof for accepted.
TEST(Handshake, WhoIsSentAwayAfterItsProofDoesNotBelieveThatItIsIn) {
  Pair p;
  std::string client = "ok";
  std::thread t([&] {
    try {
      proveAsClient(p.client, "token of this run", "data", patience(), nullptr);
    } catch (const Error& e) {
      client = name(e.kind());
    }
  });
  EXPECT_THROW(proveAsServer(p.server, "token of this run", "data", patience(), nullptr,
                             [] { throw Error(ErrorKind::kPeer, "no room"); }),
               Error);
  p.server.close();
  t.join();
  EXPECT_EQ(client, "peer");
}

TEST(Handshake, OnlyTheSameTokenAndPurpose) {
  EXPECT_EQ(handshake("secret secret 16", "secret secret 16", "data"), "ok ok");
  EXPECT_EQ(handshake("secret secret 16", "Secret secret 16", "data"), "peer peer");
  EXPECT_EQ(handshake("secret secret 16", "secret secret 16", "control"), "peer peer");
}

}  // namespace
}  // namespace crema
