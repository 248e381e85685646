#include "host/job_io.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "base/fd_io.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "cluster/membership.h"
#include "host/stdin_reader.h"
#include "train/run.h"

namespace crema::host {
namespace {

bool readExactly(int fd, char* to, size_t bytes) {
  return moveAll(bytes, [&](size_t at) { return ::read(fd, to + at, bytes - at); });
}

}  // namespace

bool readDelimited(int fd, const char* what, std::string& buffer, google::protobuf::MessageLite* message) {
  uint64_t size = 0;
  for (int shift = 0;; shift += 7) {
    char byte = 0;
    if (!readExactly(fd, &byte, 1)) {
      if (shift == 0) return false;
      badData("stdin ended inside {}", what);
    }
    size |= static_cast<uint64_t>(byte & 127) << shift;
    if (!(byte & 128)) break;
    if (shift > 28) badData("stdin holds no {}: its length is not a varint", what);
  }
  if (size > (uint64_t{1} << 31)) badData("stdin announces {} of {} bytes; refused", what, size);
  buffer.resize(size);
  if (size > 0 && !readExactly(fd, buffer.data(), size)) badData("stdin ended inside {}", what);
  if (!message->ParseFromString(buffer)) badData("stdin holds no {}: {} bytes that cannot be read", what, size);
  return true;
}

wire::Job readJob(int fd) {
  wire::Job job;
  std::string buffer;
  if (!readDelimited(fd, "Job", buffer, &job))
    badData(
        "stdin ended before a whole Job had come; this subcommand is started by a host program (see proto/wire.proto)");
  return job;
}

std::string delimited(const google::protobuf::MessageLite& message) {
  if (message.ByteSizeLong() > INT_MAX)
    invalid(
        "a message to the host program has {} bytes, and protobuf takes at most {}: a batch of these blobs is too "
        "large; use a smaller batch_size or fewer blobs",
        message.ByteSizeLong(), INT_MAX);
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.WriteVarint32(static_cast<uint32_t>(message.ByteSizeLong()));
    if (!message.SerializeToCodedStream(&out)) internal("a message to the host program lacks required fields");
  }
  return bytes;
}

void writeDelimited(int fd, const google::protobuf::MessageLite& message) {
  const std::string bytes = delimited(message);
  const auto part = [&](size_t at) { return ::write(fd, bytes.data() + at, bytes.size() - at); };
  if (!moveAll(bytes.size(), part)) ioError("cannot write to the host program: {}", systemError(errno));
}

void toHost(const google::protobuf::MessageLite& message) {
  static Mutex mutex;
  const MutexLock lock(mutex);
  writeDelimited(STDOUT_FILENO, message);
}

wire::Event failureOf(const Error& e) {
  wire::Event failed;
  failed.mutable_failed()->set_story(e.what());
  failed.mutable_failed()->set_kind(name(e.kind()));
  return failed;
}

void reportingFailure(const std::function<void(const wire::Event&)>& emit, const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    try {
      emit(failureOf(asError(std::current_exception())));
    } catch (const std::exception&) {  // the host is gone; what body threw says more
    }
    throw;
  }
}

void exitWhenStdinEnds(Interrupt& interrupt, worker::HostRows* rows) {
  const StdinEnd end{"the task that started this process", interrupt, [rows](const Error& why) {
                       if (rows) rows->fail(why);
                     }};
  readStdin<wire::Input>("Input", end, [rows](const wire::Input& input) {
    if (rows) rows->accept(input);
  });
}

void checkJob(const wire::Job& job) {
  train::checkRun(job.ranks(), job.workers(), job.worker(), job.threads());
  checkTimeouts(job.join_timeout(), job.step_timeout(), job.replacement_timeout());
  (void)cluster::replacementNamed(job.replacement());
  if (job.least_workers() < 0 || job.least_workers() > job.workers())
    invalid("-least_workers must be 0 to {}, the number of workers, not {}", job.workers(), job.least_workers());
  if (job.first_workers() < 0 || job.first_workers() > job.workers())
    invalid("-first_workers must be 0 to {}, the number of workers, not {}", job.workers(), job.first_workers());
  if (job.first_workers() > 0 && job.first_workers() < job.least_workers())
    invalid("-first_workers {} is less than -least_workers {}, which are needed at any time", job.first_workers(),
            job.least_workers());
  if (!(job.rebalance() >= 0 && job.rebalance() < 1e9))
    invalid("-rebalance must be a number of seconds, or 0 to leave all workers equal shares, not {}", job.rebalance());
}

void checkTimeouts(double join, double step, double replacement) {
  for (const auto& [flag, seconds] :
       {std::pair{"-join_timeout", join}, {"-step_timeout", step}, {"-replacement_timeout", replacement}})
    if (!(seconds > 0 && seconds < 1e9)) invalid("{} must be a positive number of seconds, not {}", flag, seconds);
}

std::string localHost() { return "127.0.0.1"; }

}  // namespace crema::host
