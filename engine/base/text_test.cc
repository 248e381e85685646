#include "base/text.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <limits>

namespace crema {
namespace {

TEST(Text, PrintableEscapesControlsAndWhatIsNotUtf8) {
  EXPECT_EQ(printable("00000003"), "00000003");
  EXPECT_EQ(printable("K\xc3\xa4se/\xe2\x82\xac.jpg"), "K\xc3\xa4se/\xe2\x82\xac.jpg");
  EXPECT_EQ(printable(std::string_view("\x1b[31m\0\x7f", 7)), "\\x1b[31m\\x00\\x7f");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J");  // a control character of two bytes
}

}  // namespace
}  // namespace crema
