// Messages of a host program over a pipe, damaged ones too, and how a failure is reported to it.
#include "host/job_io.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <new>

#include "support/message_of.h"

namespace crema::host {
namespace {

using test::messageOf;

// A pipe with these bytes in it, whose writer is gone. They must fit into the pipe (64 KiB).
class Stream {
 public:
  explicit Stream(const std::string& bytes) {
    EXPECT_EQ(::pipe(ends_), 0);
    EXPECT_EQ(::write(ends_[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ::close(ends_[1]);
  }
  ~Stream() { ::close(ends_[0]); }
  Stream(const Stream&) = delete;
  int fd() const { return ends_[0]; }
  bool read(wire::Job* job) { return readDelimited(fd(), "Job", buffer_, job); }

 private:
  int ends_[2];
  std::string buffer_;
};

wire::Job jobOf(int worker) {
  wire::Job job;
  job.set_worker(worker), job.set_token(std::string(300, 't'));  // 300: a length of two bytes
  return job;
}

std::string delimited(const wire::Job& job) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  writeDelimited(ends[1], job);
  ::close(ends[1]);
  std::string bytes(4096, '\0');
  const ssize_t n = ::read(ends[0], bytes.data(), bytes.size());
  ::close(ends[0]);
  return bytes.substr(0, n > 0 ? static_cast<size_t>(n) : 0);
}

std::string refusal(const std::string& bytes) {
  Stream stream(bytes);
  wire::Job job;
  return messageOf([&] { EXPECT_TRUE(stream.read(&job)); });
}

TEST(ReadDelimited, GivesMessageAfterMessageUntilTheEnd) {
  Stream stream(delimited(jobOf(7)) + delimited(wire::Job()) + delimited(jobOf(8)));
  wire::Job job;
  ASSERT_TRUE(stream.read(&job));
  EXPECT_EQ(job.SerializeAsString(), jobOf(7).SerializeAsString());
  ASSERT_TRUE(stream.read(&job));
  EXPECT_EQ(job.ByteSizeLong(), 0u);
  ASSERT_TRUE(stream.read(&job));
  EXPECT_EQ(job.SerializeAsString(), jobOf(8).SerializeAsString());
  EXPECT_FALSE(stream.read(&job));
}

TEST(ReadDelimited, LeavesWhatIsBehindTheMessage) {
  Stream stream(delimited(jobOf(7)) + "rest");
  EXPECT_EQ(readJob(stream.fd()).worker(), 7);
  char rest[8];
  EXPECT_EQ(::read(stream.fd(), rest, sizeof rest), 4);
}

TEST(ReadDelimited, AMessageThatIsCutOffIsRefusedWhereverTheCutIs) {
  const std::string whole = delimited(jobOf(7));
  for (size_t n = 1; n < whole.size(); ++n) ASSERT_EQ(refusal(whole.substr(0, n)), "stdin ended inside Job") << n;
  EXPECT_NE(messageOf([&] { (void)readJob(Stream("").fd()); }).find("ended before a whole Job had come"),
            std::string::npos);
}

TEST(ReadDelimited, LengthsThatCannotBeAreRefusedBeforeMemoryIsTaken) {
  EXPECT_NE(refusal(std::string(6, '\xff')).find("its length is not a varint"), std::string::npos);
  EXPECT_NE(refusal(std::string(100, '\x80')).find("its length is not a varint"), std::string::npos);
  EXPECT_NE(refusal("\x81\x80\x80\x80\x08").find("announces Job of 2147483649 bytes; refused"), std::string::npos);
  EXPECT_NE(refusal("\xff\xff\xff\xff\xff\x7f").find("bytes; refused"), std::string::npos);
}

TEST(ReadDelimited, BytesThatAreNoMessageAreRefused) {
  EXPECT_EQ(refusal("\x03\xff\xff\xff"), "stdin holds no Job: 3 bytes that cannot be read");
}

TEST(ReportingFailure, ReportsAnyExceptionAndThrowsItOn) {
  std::vector<wire::Event> events;
  const auto emit = [&](const wire::Event& event) { events.push_back(event); };
  EXPECT_THROW(reportingFailure(emit, [] { throw std::bad_alloc(); }), std::bad_alloc);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].failed().kind(), "io");
  EXPECT_NE(events[0].failed().story().find("out of memory"), std::string::npos);
  EXPECT_EQ(messageOf([&] { reportingFailure(emit, [] { badData("damaged"); }); }), "damaged");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].failed().kind(), "data");
  reportingFailure(emit, [] {});
  EXPECT_EQ(events.size(), 2u);
}

TEST(ReportingFailure, AHostThatIsGoneDoesNotHideTheCause) {
  const auto gone = [](const wire::Event&) { ioError("cannot write to the host program"); };
  EXPECT_EQ(messageOf([&] { reportingFailure(gone, [] { badData("damaged"); }); }), "damaged");
}

}  // namespace
}  // namespace crema::host
