// What a program writes, as the log and errors have it.
#include "node/lines.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "base/fd_io.h"

namespace crema::node {
namespace {

class LinesTest : public testing::Test {
 protected:
  // What errors show of it, at most so many lines.
  std::string lastOf(const std::string& written, size_t most = 20) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    Lines lines((Descriptor(ends[0])));
    {
      const Descriptor in(ends[1]);
      const auto part = [&](size_t at) { return ::write(in.get(), written.data() + at, written.size() - at); };
      EXPECT_TRUE(moveAll(written.size(), part));
    }
    lines.end(60);
    return lines.last(most);
  }
  // The log's lines of it.
  std::string logOf(const std::string& written) {
    testing::internal::CaptureStderr();
    lastOf(written);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(LinesTest, TheLastAreKept) {
  EXPECT_EQ(lastOf(""), "");
  EXPECT_EQ(lastOf("one\ntwo\nthree\nand half", 3), "; its last lines:\n  two\n  three\n  and half");
  EXPECT_EQ(logOf("one\n\ntwo"), "one\n\ntwo\n");
}

// As Keras and tqdm write them: states that overwrite each other, and none of them a line for ever.
TEST_F(LinesTest, ProgressBarsAreLines) {
  std::string bar = "Epoch 1\n";
  for (int i = 1; i <= 100; ++i) bar += fmt::format("\b\b\b\b\r{} of 100", i);
  EXPECT_EQ(lastOf(bar), "; its last lines:\n  Epoch 1\n  100 of 100");
  EXPECT_EQ(lastOf(bar + "\nsaved\n"), "; its last lines:\n  Epoch 1\n  100 of 100\n  saved");
  EXPECT_EQ(lastOf(bar + "\r\nsaved\n"), "; its last lines:\n  Epoch 1\n  100 of 100\n  saved");
  const std::string log = logOf(bar + "\r\nsaved\n");
  EXPECT_EQ(log.rfind("Epoch 1\n1 of 100\n", 0), 0u) << log;
  EXPECT_EQ(log.substr(log.size() - 17), "100 of 100\nsaved\n");
  EXPECT_LT(std::count(log.begin(), log.end(), '\n'), 60) << "not each of 100 states";
  EXPECT_EQ(logOf("1 of 2\r2 of 2\r"), "1 of 2\n2 of 2\n");
  EXPECT_EQ(logOf("a\r\nb\r\n"), "a\nb\n");
}

TEST_F(LinesTest, OfALongLineTheEndIsKept) {
  const std::string last = lastOf(std::string(100000, 'a') + "\xc3\xa4" + std::string(1999, 'b') + "\n");
  EXPECT_EQ(last.substr(last.size() - 2005), "\n  ..." + std::string(1999, 'b')) << last.size();
  EXPECT_LT(last.size(), 5000u);
}

}  // namespace
}  // namespace crema::node
