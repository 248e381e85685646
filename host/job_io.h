// Jobs in, events out: how a host program (the JVM, `crema train -workers`) talks to a child over its pipes; bytes in
// proto/wire.proto.
#pragma once
#include <functional>
#include <string>

#include "base/socket.h"
#include "cluster/host_rows.h"
#include "wire.pb.h"

namespace crema::host {

[[nodiscard]] wire::Job readJob(int fd);  // the one delimited Job; kData when the stream holds none
void writeDelimited(int fd, const google::protobuf::MessageLite& message);  // whole; kIo when the reader is gone
void toHost(const google::protobuf::MessageLite& message);                  // delimited, on stdout; from any thread

// Runs body; an error goes to `emit` as Failed before it goes on. When stdout is closed, the error is logged on stderr.
void reportingFailure(const std::function<void(const wire::Event&)>& emit, const std::function<void()>& body);

// One message, its length read byte by byte, so that nothing behind it is consumed. `what` names it in errors. false:
// the stream ended before it.
[[nodiscard]] bool readDelimited(int fd, const char* what, std::string& buffer, google::protobuf::MessageLite* message);

// Reads stdin in a thread of its own, and gives the host's Inputs to `rows`. While `rows` makes it wait (scoring, when
// enough rows are queued) the end of stdin is not noticed, but writing to the host then fails. At the end of stdin (the
// task is gone) the interrupt is raised, and if the process is still there three seconds later it exits. The second
// safeguard is PR_SET_PDEATHSIG. rows: must live as long as the process; null when none are announced.
void exitWhenStdinEnds(Interrupt& interrupt, cluster::HostRows* rows = nullptr);

void checkTimeouts(double join, double step);  // seconds, of flags
void checkJob(const wire::Job& job);           // throws kInvalid for impossible ranks, workers, threads or timeouts
std::string localHost();                       // "127.0.0.1"

}  // namespace crema::host
