// What an all-reduce is for. All workers must be at the same one: a frame carries the tag, and one with another tag is
// refused.
//
// On the wire 64 bits (FrameHeader::step). A gradient's tag is its iteration, and from 2^32 on the number of its part; the
// others have bits above 2^46.
#pragma once
#include <fmt/core.h>

#include <cstdint>
#include <string>

namespace crema::collective {

class Tag {
 public:
  static Tag gradient(int64_t iteration, int part = 0) {
    return {int64_t{part} << 32, iteration, fmt::format("step {}", iteration)};
  }
  static Tag beginning(int64_t iteration) {
    return {int64_t{1} << 47, iteration, fmt::format("the agreement to begin with step {}", iteration)};
  }
  static Tag test(int net, int64_t iteration) {
    return {(int64_t{net} + 1) << 48, iteration, fmt::format("the test of net {} in step {}", net, iteration)};
  }
  static Tag state(int64_t iteration) {
    return {int64_t{1} << 60, iteration, fmt::format("taking over the state of rank 0 in step {}", iteration)};
  }
  // What a worker that is behind takes from one that is ahead: part 0, 1, ...
  static Tag catchingUp(int64_t iteration, int part) {
    return {(int64_t{1} << 62) + (int64_t{part} << 46), iteration,
            fmt::format("taking over the state before step {}", iteration)};
  }
  static Tag carried(int64_t iteration) {
    return {(int64_t{1} << 62) + (int64_t{1} << 52), iteration,
            fmt::format("sharing what ranks carry from step {} to the next", iteration)};
  }
  static Tag barrier(int64_t number) { return {int64_t{1} << 61, number, fmt::format("barrier {}", number)}; }

  uint64_t value() const { return value_; }
  const std::string& text() const { return text_; }  // "step 17"

 private:
  Tag(int64_t purpose, int64_t index, std::string text)
      : value_(static_cast<uint64_t>(purpose + index)), text_(std::move(text)) {}

  uint64_t value_;
  std::string text_;
};

}  // namespace crema::collective
