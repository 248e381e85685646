// Jobs in, events out: how a host program (the JVM, `crema train -workers`) talks to a child over its pipes; bytes in
// proto/wire.proto.
#pragma once
#include <functional>
#include <string>

#include "base/socket.h"
#include "wire.pb.h"
#include "worker/host_rows.h"

namespace crema::host {

[[nodiscard]] wire::Job readJob(int fd);  // the one delimited Job; kData when the stream holds none
std::string delimited(const google::protobuf::MessageLite& message);        // its length as a varint, then it
void writeDelimited(int fd, const google::protobuf::MessageLite& message);  // whole; kIo when the reader is gone
// Delimited, on stdout; from any thread. Waits without a deadline while the host does not read: so a host that is busy
// slows its child down. A host that is gone has closed the pipe, which is an error here, and the end of a task closes
// stdin as well, after which the process exits within seconds (stdin_reader.h).
void toHost(const google::protobuf::MessageLite& message);

wire::Event failureOf(const Error& e);  // Failed

// Runs body; an error goes to `emit` as Failed before it goes on. When stdout is closed, the error is logged on stderr.
void reportingFailure(const std::function<void(const wire::Event&)>& emit, const std::function<void()>& body);

// One message, its length read byte by byte, so that nothing behind it is consumed. `what` names it in errors. false:
// the stream ended before it.
[[nodiscard]] bool readDelimited(int fd, const char* what, std::string& buffer, google::protobuf::MessageLite* message);

// readStdin() of stdin_reader.h for the host's Inputs, which `rows` takes. While `rows` makes it wait (scoring, when
// enough rows are queued) the end of stdin is not noticed, but writing to the host then fails. rows: must live as long
// as the process; null when none are announced.
void exitWhenStdinEnds(Interrupt& interrupt, worker::HostRows* rows = nullptr);

void checkTimeouts(double join, double step, double replacement = 1);  // seconds, of flags
void checkJob(const wire::Job& job);  // throws kInvalid for impossible ranks, workers, threads or timeouts
std::string localHost();              // "127.0.0.1"

}  // namespace crema::host
