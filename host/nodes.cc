#include "host/nodes.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "cluster/coordinator.h"
#include "cluster/secret.h"
#include "host/job_io.h"
#include "host/outbox.h"
#include "host/stdin_reader.h"
#include "node/node.h"
#include "node/nodes.h"

namespace crema::host {
namespace {

// Each node is an open socket, and the usual limit is 1024.
void raiseOpenFiles() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

// A node that has failed still answers: feeding tasks that Spark repeats learn why, and not only that nobody is there.
constexpr auto kLastWords = std::chrono::seconds(10);

// To a host that may have left.
void tell(const wire::NodeEvent& event) {
  try {
    toHost(event);
  } catch (const std::exception&) {  // the coordinator's host hears of what matters
  }
}

}  // namespace

void runNode(const wire::Job& job) {
  raiseOpenFiles();
  ::signal(SIGPIPE, SIG_IGN);
  static node::Node& node = *new node::Node(job, tell);  // never freed: the thread below may outlive it
  std::thread([] {
    std::string buffer;
    try {
      wire::NodeInput input;
      while (readDelimited(STDIN_FILENO, "NodeInput", buffer, &input)) node.take(input);
    } catch (const std::exception&) {  // half a message: who wrote it is gone
    }
    node.hostGone();
  }).detach();
  try {
    node.run();
  } catch (...) {
    const Error e = asError(std::current_exception());
    wire::NodeEvent failed;
    failed.mutable_failed()->set_story(e.what());
    failed.mutable_failed()->set_kind(name(e.kind()));
    tell(failed);
    node.end();
    if (node.started()) std::this_thread::sleep_for(kLastWords);
    throw;
  }
  node.end();
  exitBesideStdin();
}

void coordinateNodes(const wire::Job& job, Interrupt& interrupt) {
  raiseOpenFiles();
  cluster::CoordinatorOptions o;
  o.host = job.host(), o.listener = job.node().listener(), o.secret = cluster::secretOf(job);
  o.members = job.workers(), o.joinTimeout = job.join_timeout(), o.stepTimeout = job.step_timeout();
  o.placesReturn = true;
  if (o.members < 1) invalid("a run needs at least one node, not {}", o.members);
  static Outbox& outbox = *new Outbox(toHost);  // as the interrupt
  const auto emit = [](const wire::Event& event) { outbox.put(event); };
  reportingThrough(outbox, hostPatience(job), [&] {
    static cluster::Coordinator& coordinator =
        *new cluster::Coordinator(o, std::make_unique<node::Nodes>(), emit);  // as the interrupt
    readStdin<wire::Input>("Input", {"the driver's program", interrupt}, [](const wire::Input& input) {
      if (input.has_note()) coordinator.send(input.note());
      if (input.wish().stop()) coordinator.askForEnd();
    });
    try {
      coordinator.run(&interrupt);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::kStopped) exitBesideStdin();  // the driver wanted it so, and nobody reads on
      throw;
    }
    wire::Event done;
    done.mutable_done();
    emit(done);
  });
  exitBesideStdin();
}

}  // namespace crema::host
