// How a net trains where no one looks at it between two layers: the values, statistics and gradients of Net::forward() and
// Net::backward(), bit for bit where they are finite, in less time. A BatchNorm computes the Scale and the ReLU in place behind it
// (layers/norm_group.h), and a convolution below it that is alone with it writes where it keeps its bottom. An Eltwise that
// adds computes the ReLU in place behind it and the Split behind that (layers/sum_group.h). A convolution does the forward pass
// of a ReLU in place behind it while its outputs are in the first cache, a max pooling the backward pass of one in place below
// it (layers/pool_group.h).
//
// Values and gradients of blobs share one stretch of memory (net/training_memory.h).
//
// Behind its first layer a group is of layers in place and a Split that copies nothing, so that who reads a blob behind it
// finds the value that it always has, and each parameter its gradient. Behind forward() values that no backward pass reads,
// and behind backward() all blobs, are not defined, but for outputs and what has memory of its own. The copies that the
// layers by themselves would keep are not made: backward() belongs to the plan's own forward().
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/norm.h"
#include "net/net.h"
#include "net/placement.h"

namespace crema::net {

class TrainingPlan {
 public:
  // Which layers backwardLayer() is called for: those that a loss needs, or all, as a benchmark does.
  enum class GoingBack { Needed, All };
  struct Options {
    GoingBack which = GoingBack::Needed;
    bool mayDefer = false;     // what deferGradients() needs stays in memory until the next forward()
    bool maySeparate = false;  // debugInfo() may be set for some passes, which then go layer by layer
  };
  explicit TrainingPlan(Net& net) : TrainingPlan(net, Options()) {}
  TrainingPlan(Net& net, Options options);  // the net must live longer

  // Before a gradient: what Net::clearParamDiffs() does, but for layers that set theirs in the next backward().
  void clearParamDiffs();
  double forward();  // the weighted sum of losses
  // Adds to parameter gradients. done(from), after each layer: of the learnt parameters those from element `from` of the
  // flat diff on have their gradients.
  void backward(const std::function<void(int64_t from)>& done = nullptr);
  // The next backward() leaves the gradients of inner products' weights out where it can, and updateDeferred() computes
  // each with the new weights: so they need no memory, and are neither written nor read. false: `weights` has its gradient.
  void deferGradients() { defers_ = true; }
  bool updateDeferred(const Blob& weights, const kernels::Update& u, float* histories, int64_t stride);
  // The same in a run of several ranks (training_factors.cc), where a gradient is the sum of theirs: the update computes it from
  // the factors of all of them, which takeFactors(), for ranks of this process, and others bring together.
  struct Deferrable {
    int layer;
    int64_t from, to;  // its weights, in the flat diff
    kernels::IpShape shape;
    int64_t factors() const { return int64_t{shape.n} * (int64_t{shape.in} + shape.out); }  // of a rank: x, then dy
  };
  // With as many rows in each pass, as far as the net says; as it was set up, so that all workers find the same.
  const std::vector<Deferrable>& deferrable() const { return deferrable_; }
  // From now on deferGradients() is for these layers alone; none: for nothing. sum: over all ranks.
  void shareFactors(const std::vector<Deferrable>& layers, int ranks, const std::vector<kernels::SumStep>& sum);
  bool sharesFactors() const { return !shared_.empty(); }
  void takeFactors(int layer, int rank);                                       // of the last backward() of that layer
  std::vector<float>& factors(int layer) { return shared_.at(layer).values; }  // of all ranks, one behind the other
  // One layer after the other, as these do: nothing happens for a layer that another computes.
  double forwardLayer(int i);
  void backwardLayer(int i);
  // As Net::firstNotFinite() says it, of the last forward(): values are computed anew, as others may have their memory by now;
  // but those of layers in place on a batch, which is there once, and a recurrent layer goes on from the state behind it.
  std::string firstNotFinite();
  // Memory for so many values, which blobs take from the next forward() on.
  Blob& lend(int64_t values);
  const std::vector<Need>& sharing() const { return placement_.needs; }
  int64_t shared() const { return memory_.count(); }  // numbers that those take together; 0: each has memory of its own
  int computedBy(int i) const { return layers_[static_cast<size_t>(i)].by; }  // i, or the leader of its group
  // The layer that does its forward pass.
  int forwardBy(int i) const {
    const int convolution = layers_[static_cast<size_t>(i)].rectifiedBy;
    return convolution >= 0 ? convolution : computedBy(i);
  }
  int backwardBy(int i) const {  // the same of its backward pass
    const int pool = layers_[static_cast<size_t>(i)].stoppedBy;
    return pool >= 0 ? pool : computedBy(i);
  }

 private:
  struct Planned {
    int by;
    std::vector<int> behind = {};  // of a leader
    int writesFor = -1;            // the leader that keeps this layer's top
    int rectifiedFor = -1;         // the ReLU in place behind a convolution, which does its forward pass
    int rectifiedBy = -1;          // of that ReLU: the convolution
    int stoppedBy = -1;            // of a ReLU: the max pooling behind it, which does its backward pass
    bool kept = false;             // of a leader: the layer below has written where it keeps its bottom
  };
  void findGroup(int leader);
  void findSumGroup(int leader);
  void findWriter(int leader);
  void findRectified(int convolution);
  void findStopped(int relu);
  int next(int layer, const Blob* made) const;  // the first layer behind that reads it; -1: none
  void placeBlobs();
  void findDeferred();
  void findDeferrable();
  void findSetters();
  bool learnsAlone(int i, int param) const;
  void orderLearnt();
  bool separately() const;
  bool isLeft(int layer) const { return !severalRanks_ || shared_.count(layer) > 0; }
  std::optional<kernels::NormSteps<float>> stepsOf(int leader) const;
  float slopeBehindSum(int leader) const;
  void forwardSum(int leader);
  void forwardRectified(int convolution);
  void backwardSum(int leader);

  Net& net_;
  Options options_;
  std::vector<Planned> layers_;
  bool asPlanned_ = true;  // the last forward()
  std::vector<double> scale_, offset_;
  struct Learnt {
    int64_t from;   // in the flat diff
    int lastLayer;  // behind whose backward pass its gradient is complete
  };
  std::vector<Learnt> learnt_;                        // from the end of the flat diff to its beginning
  std::vector<layers::Layer*> setters_;               // of the gradients of their parameters
  std::vector<std::pair<int64_t, int64_t>> toClear_;  // the others', from and to, in the flat diff
  std::map<const Blob*, int> deferred_;               // layers that can, by their weights
  struct Shared {
    Deferrable of;
    std::vector<float> values;
  };
  std::vector<Deferrable> deferrable_;
  std::map<int, Shared> shared_;  // by layer
  std::vector<kernels::SumStep> sum_;
  bool severalRanks_ = false;
  bool defers_ = false, left_ = false;  // the next backward(); the last one
  Placement placement_;
  Blob memory_, lent_;
};

}  // namespace crema::net
