// A member's connection to a coordinator that goes away.
#include <gtest/gtest.h>

#include "cluster/doorman.h"
#include "cluster/session.h"
#include "support/coordinator_ends.h"
#include "support/message_of.h"

namespace crema::cluster {
namespace {

using crema::test::kPatience;
using crema::test::messageOf;
using crema::test::soon;

class LeftSession : public testing::Test {
 protected:
  std::unique_ptr<Doorman> doorman_ = std::make_unique<Doorman>("127.0.0.1", 0, test::kToken);
  const SessionOptions options_{doorman_->address(), test::kToken};
  Interrupt interrupt_;
  Session session_{options_, {}, interrupt_};
};

TEST_F(LeftSession, ALostCoordinatorIsReportedAtOnce) {
  doorman_.reset();
  ASSERT_TRUE(soon([&] { return interrupt_.raised(); }));
  const std::string message = messageOf([&] { interrupt_.check(); });
  EXPECT_EQ(message.find("the coordinator is gone: recv from the coordinator at " + options_.coordinator + ": "), 0u)
      << message;
  session_.failed(Error(ErrorKind::kIo, "the disk is full"));  // nobody receives it, and nothing is thrown
}

// It was building its net, and the coordinator has said goodbye and gone.
TEST_F(LeftSession, WhoIsReadyBehindTheEndWasNotNeeded) {
  control::ToMember bye;
  bye.mutable_bye();
  doorman_->next(Deadline::after(kPatience), nullptr).value().from->send(bye, Deadline::after(kPatience));
  doorman_.reset();
  const auto behind = [&] { session_.ready("", ""), session_.ready("", ""), session_.waitForStart(); };
  for (int i = 0; i < 2; ++i) EXPECT_THROW(behind(), RunOver);
}

}  // namespace
}  // namespace crema::cluster
