#include "base/packets.h"

#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <tuple>
#include <vector>

#include "base/packet_sum.h"

namespace crema {
namespace {

// A wire that takes and gives in parts of at most so many bytes.
struct Wire {
  std::string bytes = {};
  size_t most = SIZE_MAX, at = 0;
  std::mt19937 draw{7};

  size_t part(size_t wanted) {
    return most == SIZE_MAX ? wanted : std::min(wanted, draw() % (most + 1));  // 0: it would wait
  }
  Packets::Send sender() {
    return [this](const iovec* parts, size_t count) {
      size_t all = 0;
      for (size_t i = 0; i < count; ++i) all += parts[i].iov_len;
      size_t left = part(all);
      const size_t sent = left;
      for (size_t i = 0; i < count && left > 0; ++i) {
        const size_t n = std::min(left, parts[i].iov_len);
        bytes.append(static_cast<const char*>(parts[i].iov_base), n);
        left -= n;
      }
      return sent;
    };
  }
  Packets::Receive receiver() {
    return [this](void* to, size_t wanted) {
      const size_t n = part(std::min(wanted, bytes.size() - at));
      std::memcpy(to, bytes.data() + at, n);
      at += n;
      return n;
    };
  }
};

std::string randomText(size_t size, unsigned seed) {
  std::mt19937 draw(seed);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(draw());
  return text;
}

void sendAll(Packets& packets, Wire& wire, const std::string& text) {
  for (size_t at = 0; at < text.size();) at += packets.write(wire.sender(), text.data() + at, text.size() - at);
}

// What comes out of the wire until nothing more does; "damaged" in `why` when that is why it has ended.
// room: of who reads; with much of it large packets go straight there.
std::string received(Packets& packets, Wire& wire, std::string* why = nullptr, size_t room = 1000) {
  std::string text;
  std::vector<char> part(room);
  for (;;) {
    try {
      const size_t n = packets.read(wire.receiver(), part.data(), part.size());
      text.append(part.data(), n);
      if (n == 0 && wire.at == wire.bytes.size()) break;
    } catch (const DamagedPacket& e) {
      if (why) *why = e.what();
      break;
    }
  }
  return text;
}

class PacketsTest : public testing::TestWithParam<bool> {
 protected:
  static std::optional<PacketKeys> keys(char out, char in) {
    if (!GetParam()) return std::nullopt;
    return PacketKeys{std::string(32, out), std::string(32, in)};
  }
  static std::string wireOf(const std::vector<std::string>& texts) {
    Packets packets(keys('a', 'b'));
    Wire wire;
    for (const auto& text : texts) sendAll(packets, wire, text);
    return wire.bytes;
  }
};

TEST_P(PacketsTest, WhatGoesInComesOutInPartsOfAnySize) {
  for (const size_t most : {size_t{3}, size_t{700}, size_t{100000}, SIZE_MAX})
    for (const size_t room : {size_t{1000}, size_t{100000}}) {
      Packets here(keys('a', 'b')), there(keys('b', 'a'));
      Wire wire;
      wire.most = most;
      std::string all;
      for (const size_t size : {size_t{1}, size_t{2}, size_t{1000}, size_t{5000}, Packets::kMost - 1, Packets::kMost,
                                Packets::kMost + 1, size_t{300000}, size_t{7}}) {
        if (most == 3 && size > 5000) break;
        const std::string text = randomText(size, static_cast<unsigned>(size));
        sendAll(here, wire, text);
        all += text;
      }
      const std::string text = received(there, wire, nullptr, room);
      EXPECT_EQ(text.size(), all.size()) << most << ", " << room;
      EXPECT_TRUE(text == all) << most << ", " << room;
      EXPECT_FALSE(there.ready());
    }
}

TEST_P(PacketsTest, AnyFlippedBitIsFoundBeforeItsPacketCounts) {
  const std::vector<std::string> texts = {"the first", std::string(200, 'x'), randomText(5000, 1), "the last"};
  const std::string whole = wireOf(texts);
  std::string all;
  for (const auto& text : texts) all += text;
  for (const size_t room : {size_t{1000}, size_t{100000}})
    for (size_t bit = 0; bit < whole.size() * 8; bit += bit < 3000 ? 1 : 13) {
      Wire wire{whole};  // nothing follows: a longer size would be waited for
      wire.bytes[bit / 8] = static_cast<char>(wire.bytes[bit / 8] ^ (1 << bit % 8));
      Packets there(keys('b', 'a'));
      std::string why;
      const std::string text = received(there, wire, &why, room);
      ASSERT_FALSE(why.empty()) << "bit " << bit;
      ASSERT_TRUE(text == all.substr(0, text.size())) << "bit " << bit;
      ASSERT_LT(text.size(), all.size()) << "bit " << bit;
    }
}

TEST_P(PacketsTest, LostRepeatedAndExchangedPacketsAreFound) {
  const std::vector<std::string> texts = {std::string(50, 'a'), std::string(50, 'b'), std::string(50, 'c')};
  const std::string whole = wireOf(texts);
  const size_t start = GetParam() ? 24 : 0, size = (whole.size() - start) / 3;
  const auto packet = [&](size_t i) { return whole.substr(start + i * size, size); };
  const std::vector<std::vector<size_t>> orders = {{0, 2}, {0, 0, 1, 2}, {1, 0, 2}, {0, 1, 1}};
  for (const auto& order : orders) {
    Wire wire{whole.substr(0, start)};
    for (const size_t i : order) wire.bytes += packet(i);
    Packets there(keys('b', 'a'));
    std::string why;
    const std::string text = received(there, wire, &why);
    EXPECT_NE(why.find("damaged on the way"), std::string::npos);
    EXPECT_EQ(text, std::string(100, 'a').substr(0, order[0] == 0 ? 50 : 0) + (order == orders[3] ? texts[1] : ""));
  }
}

// A packet counts when all of it is out: until then its sender must come back with it.
TEST_P(PacketsTest, AHalfSentPacketIsNotCounted) {
  Packets here(keys('a', 'b')), there(keys('b', 'a'));
  Wire wire;
  size_t room = 10;
  const auto narrow = [&](const iovec* parts, size_t count) {
    size_t sent = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t n = std::min(room, parts[i].iov_len);
      wire.bytes.append(static_cast<const char*>(parts[i].iov_base), n);
      room -= n, sent += n;
    }
    return sent;
  };
  const std::string text(100, 'q');
  EXPECT_FALSE(here.halfSent());
  EXPECT_EQ(here.write(narrow, text.data(), text.size()), 0u);
  EXPECT_TRUE(here.halfSent());
  room = 1000;
  EXPECT_EQ(here.write(narrow, text.data(), text.size()), 100u);
  EXPECT_FALSE(here.halfSent());
  EXPECT_EQ(received(there, wire), text);
}

INSTANTIATE_TEST_SUITE_P(Both, PacketsTest, testing::Bool(),
                         [](const auto& which) { return which.param ? "Sealed" : "Summed"; });

// The bytes as packets.h has them, by libsodium's own functions.
TEST(Packets, SealedBytesAreASecretstream) {
  const std::string key(32, 'k'), text = "not to be read";
  Packets here(PacketKeys{key, std::string(32, 'o')});
  Wire wire;
  sendAll(here, wire, text);
  ASSERT_EQ(wire.bytes.size(), 24 + 8 + text.size() + 17);
  EXPECT_EQ(wire.bytes.find(text), std::string::npos);
  const auto* at = reinterpret_cast<const unsigned char*>(wire.bytes.data());
  uint32_t size = 0;
  std::memcpy(&size, at + 24, 4);
  EXPECT_EQ(size, text.size());
  crypto_secretstream_xchacha20poly1305_state state;
  ASSERT_EQ(
      crypto_secretstream_xchacha20poly1305_init_pull(&state, at, reinterpret_cast<const unsigned char*>(key.data())),
      0);
  std::string opened(text.size(), '\0');
  EXPECT_EQ(crypto_secretstream_xchacha20poly1305_pull(&state, reinterpret_cast<unsigned char*>(opened.data()), nullptr,
                                                       nullptr, at + 32, text.size() + 17, at + 24, 8),
            0);
  EXPECT_EQ(opened, text);
}

TEST(Packets, AnotherKeyOpensNothing) {
  Packets here(PacketKeys{std::string(32, 'k'), std::string(32, 'o')});
  Packets there(PacketKeys{std::string(32, 'o'), std::string(32, 'l')});
  Wire wire;
  sendAll(here, wire, "for one reader");
  std::string why;
  EXPECT_EQ(received(there, wire, &why), "");
  EXPECT_NE(why.find("its check does not fit"), std::string::npos);
}

TEST(Packets, SumsAreXxhashsOnAnyProcessor) {
  std::vector<char> bytes(5000);
  std::mt19937 draw(3);
  for (char& b : bytes) b = static_cast<char>(draw());
  for (size_t size = 0; size <= 4096; size += size < 600 ? 1 : 97)
    for (const size_t from : {0u, 1u, 31u}) {
      const uint64_t seed = draw(), want = XXH3_64bits_withSeed(bytes.data() + from, size, seed);
      EXPECT_EQ(packetSum(bytes.data() + from, size, seed), want) << size;
      EXPECT_EQ(detail::packetSumAnywhere(bytes.data() + from, size, seed), want) << size;
    }
}

TEST(Packets, ASizeThatNoPacketHasIsRefusedAtOnce) {
  for (const uint32_t size : {0u, 65537u, 0xffffffffu})
    for (const uint32_t check : {0u, static_cast<uint32_t>(XXH3_64bits_withSeed(&size, sizeof size, 0))}) {
      Packets there(std::nullopt);
      Wire wire{std::string(reinterpret_cast<const char*>(&size), 4)};
      wire.bytes.append(reinterpret_cast<const char*>(&check), 4);
      std::string why;
      (void)received(there, wire, &why);
      EXPECT_NE(why.find("packet 0 was damaged on the way: the check of its length"), std::string::npos) << size;
    }
}

}  // namespace
}  // namespace crema
