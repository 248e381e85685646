// A broker with room for 1,000 bytes, and what tests put into it.
#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "node/broker.h"

namespace crema::node {

inline Wait now() { return {Deadline::after(0)}; }
inline Wait soon() { return {Deadline::after(60)}; }

inline Item blockOf(int64_t rows, uint64_t bytes, uint64_t feed = 0) {
  Item item;
  item.block = std::make_shared<Descriptor>(::memfd_create("block", MFD_CLOEXEC));
  item.rows = item.count = rows, item.bytes = bytes, item.feed = feed;
  return item;
}

inline Item markOf(wire::Mark mark) {
  Item item;
  item.mark = mark;
  return item;
}

class WithBroker : public testing::Test {
 protected:
  Broker b_{{"input", "output", "error"}, 1000};
};

}  // namespace crema::node
