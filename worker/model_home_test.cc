// A model that comes in pieces is complete at its path, or not there at all.
#include "worker/model_home.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/message_of.h"
#include "support/shared_data.h"

namespace crema::worker {
namespace {

using crema::test::messageOf;
using crema::test::TemporaryFolder;

control::ToCoordinator::Piece piece(const std::string& data, int64_t size = -1) {
  control::ToCoordinator::Piece p;
  p.set_data(data);
  if (size >= 0) p.set_size(static_cast<uint64_t>(size));
  return p;
}

TEST(ModelHome, IsThereWithTheLastPiece) {
  const TemporaryFolder folder;
  const std::string path = folder.file("lenet.caffemodel");
  ModelHome home(path);
  EXPECT_FALSE(home.take(piece("one "), "worker 0"));
  EXPECT_FALSE(home.take(piece("two "), "worker 0"));
  EXPECT_FALSE(fileExists(path)) << "half a model";
  EXPECT_TRUE(home.take(piece("three", 13), "worker 0"));
  EXPECT_EQ(readFile(path), "one two three");
}

TEST(ModelHome, AnotherSizeThanAnnouncedLeavesNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.file("lenet.caffemodel");
  ModelHome home(path);
  EXPECT_FALSE(home.take(piece("one "), "worker 0"));
  EXPECT_EQ(messageOf([&] { (void)home.take(piece("two", 9), "worker 0"); }),
            "the model is trained and not saved: worker 0 sent 7 bytes of a model of 9. Mend that or name another "
            "place with -model, and run again");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(ModelHome, WhereItCannotBeWrittenIsNamed) {
  const TemporaryFolder folder;
  ModelHome home(folder.file("no/such/lenet.caffemodel"));
  try {
    (void)home.take(piece("one", 3), "worker 0");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kIo);
    const std::string message = e.what();
    EXPECT_EQ(message.find("the model is trained and not saved: "), 0u) << message;
    EXPECT_NE(message.find(folder.file("no/such/lenet.caffemodel")), std::string::npos) << message;
    EXPECT_NE(message.find("No such file or directory"), std::string::npos) << message;
  }
}

TEST(ModelHome, ModelsThatNobodyAskedForAreRefused) {
  ModelHome home("");
  EXPECT_EQ(messageOf([&] { (void)home.take(piece("one", 3), "worker 1"); }),
            "the model is trained and not saved: worker 1 sent a model that was not asked for. Mend that or name "
            "another place with -model, and run again");
}

}  // namespace
}  // namespace crema::worker
