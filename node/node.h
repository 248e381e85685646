// `crema node`: one per program of a run. It joins the coordinator, holds the program's port, queues and state, starts
// the program in a process of its own (or learns that the process that started the node is it), watches over that, and
// tells the coordinator how it ended. It ends with the run, with its executor, or with its host, unless that has left.
#pragma once
#include <functional>
#include <memory>

#include "node.pb.h"
#include "wire.pb.h"

namespace crema::node {

class Node {
 public:
  // emit: to the host; from any thread, and it must not throw.
  Node(const wire::Job& job, std::function<void(const wire::NodeEvent&)> emit);
  ~Node();
  // From the thread that reads the host's messages.
  void take(const wire::NodeInput& input);
  void hostGone();
  // Returns when the run is over, or, alone, when the host has gone; throws what ended it before, of which all members of the run hear.
  void run();
  // Whether all nodes of the run were there, so that some may be fed.
  bool started() const;
  // Ends the program and all that it started, when it still runs. Before the end of the process.
  void end();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace crema::node
