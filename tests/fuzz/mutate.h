// Damaged inputs: some bytes of good ones changed. Which, follows from (seed, number) alone, so that any input can be
// made again.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"

namespace crema::fuzz {

class Mutator {
 public:
  // `words`: what text formats are made of; empty for binary ones.
  Mutator(std::vector<std::string> seeds, std::vector<std::string> words, uint64_t seed)
      : seeds_(std::move(seeds)), words_(std::move(words)), seed_(seed) {}

  std::string input(uint64_t number) {
    RandomKey key;
    key.seed = seed_, key.step = number;
    RandomStream stream(key);
    random_ = &stream, drawn_ = 0;
    std::string text = seeds_[below(seeds_.size())];
    for (uint64_t n = 1 + below(3) * below(3); n > 0; --n) change(text);
    return text;
  }

 private:
  uint64_t below(uint64_t limit) { return random_->below(drawn_++, limit); }

  void change(std::string& t) {
    if (t.empty()) t = "\n";
    const uint64_t at = below(t.size()), length = std::min<uint64_t>(1 + below(1 + below(64)), t.size() - at);
    switch (below(words_.empty() ? 8 : 40)) {
      case 0:
        t[at] = static_cast<char>(t[at] ^ (1 << below(8)));
        return;
      case 1:
        t[at] = static_cast<char>(below(256));
        return;
      case 2:
        t.erase(at, length);
        return;
      case 3:
        t.insert(at, t.substr(below(t.size()), length));
        return;
      case 4: {
        const std::string& other = seeds_[below(seeds_.size())];
        const uint64_t from = below(other.size() + 1);
        t.replace(at, length, other.substr(from, below(256)));
        return;
      }
      case 5:
        t.resize(at);
        return;
      case 6:
        return number(t, at, 1u << below(4));
      case 7:
        std::fill_n(t.begin() + static_cast<std::ptrdiff_t>(at), length, static_cast<char>(below(2) ? 0 : 255));
        return;
      case 8:
      case 9:
        return line(t, at);
      default:
        return word(t, at);
    }
  }
  // Numbers at which arithmetic breaks, of 1, 2, 4 or 8 bytes.
  void number(std::string& t, uint64_t at, uint64_t width) {
    static const uint64_t kEdges[] = {0,
                                      1,
                                      2,
                                      127,
                                      128,
                                      255,
                                      256,
                                      4095,
                                      4096,
                                      32767,
                                      65535,
                                      65536,
                                      0x7fffffff,
                                      0x80000000,
                                      0xffffffff,
                                      0x100000000,
                                      0x7fffffffffffffff,
                                      0xffffffffffffffff};
    uint64_t value = kEdges[below(std::size(kEdges))];
    for (uint64_t i = 0; i < width && at + i < t.size(); ++i, value >>= 8) t[at + i] = static_cast<char>(value);
  }
  // One word or, mostly, one number of the text becomes another.
  void word(std::string& t, uint64_t at) {
    static const char* const kNumbers[] = {"0",
                                           "-1",
                                           "1",
                                           "2",
                                           "3",
                                           "4",
                                           "5",
                                           "65536",
                                           "2147483647",
                                           "-2147483648",
                                           "4294967295",
                                           "1e38",
                                           "-1e-38",
                                           "nan",
                                           "inf",
                                           "0.5",
                                           "-9223372036854775808",
                                           "9223372036854775807"};
    const auto isWord = [&](uint64_t i) {
      return std::isalnum(static_cast<unsigned char>(t[i])) || t[i] == '_' || t[i] == '.' || t[i] == '-';
    };
    const auto begins = [&](uint64_t i, bool number) {
      const bool digit = std::isdigit(static_cast<unsigned char>(t[i])) || t[i] == '-';
      return isWord(i) && (i == 0 || !isWord(i - 1)) && digit == number;
    };
    const bool numeric = below(4) != 0;
    while (at < t.size() && !begins(at, numeric)) ++at;
    uint64_t end = at;
    while (end < t.size() && isWord(end)) ++end;
    t.replace(at, end - at, numeric ? kNumbers[below(std::size(kNumbers))] : words_[below(words_.size())]);
  }
  // A line of another example, here or in place of one.
  void line(std::string& t, uint64_t at) {
    const std::string& other = seeds_[below(seeds_.size())];
    const size_t from = other.find('\n', below(other.size())), to = other.find('\n', from + 1);
    const size_t here = t.find('\n', at), next = t.find('\n', here + 1);
    if (from == std::string::npos || to == std::string::npos || here == std::string::npos || next == std::string::npos)
      return;
    t.replace(here, below(2) ? next - here : 0, other.substr(from, to - from));
  }

  std::vector<std::string> seeds_, words_;
  uint64_t seed_;
  const RandomStream* random_ = nullptr;
  uint64_t drawn_ = 0;
};

}  // namespace crema::fuzz
