// Forward passes of a host's net by a scoring plan (net/scoring_plan.h), as long as the host looks at nothing but its inputs and
// outputs.
//
// A host may look at any blob at any time, and keep its memory. So such passes end for good with the first look at
// another blob or at a parameter, a pass of some layers, a backward pass, a hook, or weights that are shared; and what the host
// finds then is what a pass layer by layer left: it is made up for, from the inputs that the last planned pass had.
// Only nets of phase TEST, whose blobs come from Input layers alone, and none of whose layers is the host's, or carries, moves or
// writes anything.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernels/context.h"
#include "net/net.h"
#include "net/scoring_plan.h"

namespace crema::api {

class Compute;

class PlannedPasses {
 public:
  PlannedPasses(std::shared_ptr<Compute> compute, std::shared_ptr<net::Net> net);

  // For all of these the net's Compute is held. One that changes the net's weights, or looks, comes before it is done.
  std::optional<double> forward(int64_t step,
                                int64_t draw);  // the loss; nothing: the pass is to be made layer by layer
  void end();
  void weightsChange();
  void reshaped() {
    if (last_) last_->reshaped = true;
  }
  bool owes() const { return last_.has_value(); }  // the values of blobs that nobody has looked at
  bool isOpen(const Blob& blob) const { return open_.count(&blob) > 0; }  // an input or an output
  bool planning() const { return planning_; }                             // not held

 private:
  bool plan();  // false: these inputs do not fit the net
  void makeUp();
  std::vector<Shape> inputShapes() const;

  const std::shared_ptr<Compute> compute_;
  const std::shared_ptr<net::Net> net_;
  std::vector<Blob*> inputs_;
  std::set<const Blob*> open_;  // inputs and outputs
  std::atomic<bool> planning_{false};
  std::unique_ptr<kernels::FrozenWeights> frozen_;
  std::unique_ptr<net::ScoringPlan> plan_;
  std::vector<Shape> planned_;  // the inputs' shapes that it was made for
  struct Pass {
    int64_t step, draw;
    std::vector<std::unique_ptr<Blob>> inputs;
    bool reshaped;  // the net was, since
  };
  std::optional<Pass> last_;  // the net's last pass, if it was a planned one
};

}  // namespace crema::api
