#include "node/nodes.h"

#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "node.pb.h"

namespace crema::node {
namespace {

wire::NodeAbout aboutOf(const control::ToCoordinator::Hello& hello) {
  wire::NodeAbout about;
  if (!about.ParseFromString(hello.about())) about.Clear();
  return about;
}

bool isBusy(const cluster::Member& m) { return m.watched() && !m.finished; }

}  // namespace

cluster::Naming Nodes::naming() const {
  const auto role = [](int, const control::ToCoordinator::Hello& hello) {
    const wire::NodeAbout about = aboutOf(hello);
    return about.has_role() ? about.role() : std::string("no role");
  };
  const auto number = [](int member, const control::ToCoordinator::Hello& hello) {
    const wire::NodeAbout about = aboutOf(hello);
    return about.has_number() ? about.number() : member;
  };
  const auto same = [](const control::ToCoordinator::Hello& a, const control::ToCoordinator::Hello& b) {
    const wire::NodeAbout one = aboutOf(a), other = aboutOf(b);
    return one.has_number() && other.has_number() && one.number() == other.number();
  };
  return {"node", "executable", role, false, number, same};
}

std::string Nodes::remedyForMissing() const {
  return "ask for fewer nodes (num_executors), or wait longer (reservation_timeout)";
}
std::string Nodes::remedyForLoss() const {
  return "run it again, from the program's last checkpoint; with more memory (spark.executor.memory for the JVM, "
         "spark.executor.memoryOverhead for programs) if that log, or YARN, says that it was short";
}

control::ToCoordinator::Hello helloOf(const wire::Job& job, const std::string& about) {
  char host[256] = "?";
  ::gethostname(host, sizeof host - 1);
  control::ToCoordinator::Hello hello;
  hello.set_version(CREMA_VERSION), hello.set_member(-1), hello.set_attempt(job.attempt());
  hello.set_host(fmt::format("{} {}", host, job.host())), hello.set_pid(::getpid());
  hello.set_task_seconds(job.task_seconds()), hello.set_unpack_seconds(job.unpack_seconds());
  hello.set_about(about);
  return hello;
}

bool Nodes::take(const control::ToCoordinator::Piece&, const std::string& sender) {
  badData("{} sent a piece of a file, and nodes have none", sender);
}

bool Nodes::over(const cluster::Roster& roster, bool asked, bool /*done*/) const {
  return asked && std::none_of(roster.members.begin(), roster.members.end(), isBusy);
}

std::optional<wire::Note> Nodes::lastCall(const cluster::Roster& roster) const {
  bool servers = false;
  for (const cluster::Member& m : roster.members) {
    if (!isBusy(m)) continue;
    if (!aboutOf(m.hello).serves()) return std::nullopt;
    servers = true;
  }
  if (!servers) return std::nullopt;
  wire::NodeNote end;
  end.mutable_end_servers();
  wire::Note note;
  note.set_text(end.SerializeAsString());
  return note;
}

}  // namespace crema::node
