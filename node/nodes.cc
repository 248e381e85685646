#include "node/nodes.h"

#include <algorithm>

#include "base/error.h"
#include "node.pb.h"

namespace crema::node {

cluster::Naming Nodes::naming() const {
  const auto role = [](int, const control::ToCoordinator::Hello& hello) {
    wire::NodeAbout about;
    return about.ParseFromString(hello.about()) && about.has_role() ? about.role() : std::string("no role");
  };
  return {"node", "executable", role, false};
}

std::string Nodes::remedyForMissing() const { return "ask for fewer nodes (num_executors)"; }
std::string Nodes::remedyForLoss() const { return "run it again, from the program's last checkpoint"; }

bool Nodes::take(const control::ToCoordinator::Piece&, const std::string& sender) {
  badData("{} sent a piece of a file, and nodes have none", sender);
}

bool Nodes::over(const cluster::Roster& roster, bool asked) const {
  const auto busy = [](const cluster::Member& m) { return m.watched() && !m.finished; };
  return asked && std::none_of(roster.members.begin(), roster.members.end(), busy);
}

}  // namespace crema::node
