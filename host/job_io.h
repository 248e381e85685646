// Jobs in, events out: how a host program (the JVM, `crema train -workers`) talks to a child over its pipes; bytes in
// proto/wire.proto.
#pragma once
#include <functional>
#include <string>

#include "base/socket.h"
#include "caffe.pb.h"
#include "cluster/host_rows.h"
#include "wire.pb.h"

namespace crema::host {

wire::Job readJob(int fd);  // the one delimited Job; kData when the stream holds none
void writeDelimited(int fd, const google::protobuf::MessageLite& message);  // whole; kIo when the reader is gone
void toHost(const google::protobuf::MessageLite& message);                  // delimited, on stdout; from any thread

// Runs body; an error goes to `emit` as Failed before it goes on. When nobody reads that any more, stderr has the
// story.
void reportingFailure(const std::function<void(const wire::Event&)>& emit, const std::function<void()>& body);

// One message, its length read byte by byte: nothing behind it is swallowed. `what` names it. false: the stream ended
// before it.
bool readDelimited(int fd, const char* what, std::string& buffer, google::protobuf::MessageLite* message);

// Reads stdin in a thread of its own, and gives the host's Inputs to `rows`; while `rows` holds it back (scoring, when
// plenty wait) the end of stdin is not seen, but the host's other pipe is then broken. At the end of stdin (the task is
// gone) the interrupt is raised, and if the process is still there three seconds later it exits.
// The second net is PR_SET_PDEATHSIG. rows: must live as long as the process; null when none are announced.
void exitWhenStdinEnds(Interrupt& interrupt, cluster::HostRows* rows = nullptr);

// A solver file as a job: nets inlined, seed fixed (a random one is drawn when random_seed is unset or negative, and
// logged), mode checked.
void checkTimeouts(double join, double step);  // seconds, of flags
void checkJob(const wire::Job& job);  // ranks, workers, threads and timeouts that make sense; invalid() says which
std::string netOrigin(const std::string& solverPath);  // the file of its net, for messages; may be empty
caffe::SolverParameter loadSolver(const std::string& path, int64_t seedIfUnset = -1);
std::string localHost();  // "127.0.0.1"

}  // namespace crema::host
