// A run of nodes, as its coordinator sees it: they tell each other about themselves, and go on until the host asks for
// the end and all have come to it. What they compute is their programs' own.
#pragma once
#include <optional>
#include <string>

#include "cluster/work.h"
#include "wire.pb.h"

namespace crema::node {

class Nodes : public cluster::Work {
 public:
  cluster::Naming naming() const override;
  std::string remedyForMissing() const override;
  std::string remedyForLoss() const override;
  void checkStart(const cluster::Roster&) const override {}
  void checkEnd(const cluster::Roster&) const override {}
  void complete(const cluster::Roster&, wire::Event&) const override {}
  [[nodiscard]] bool take(const control::ToCoordinator::Piece& piece, const std::string& sender) override;
  bool over(const cluster::Roster& roster, bool asked, bool done) const override;
  // Servers and evaluators end when nobody else goes on, who may need them.
  std::optional<wire::Note> lastCall(const cluster::Roster& roster) const override;
};

// What a node of that Job says when it comes; about: NodeAbout.
control::ToCoordinator::Hello helloOf(const wire::Job& job, const std::string& about);

}  // namespace crema::node
