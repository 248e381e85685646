// A net: layers in file order, wired by blob names, built once from a description.
//
// Description -> filter by state -> splits -> build. Parameters lie in two flat buffers, so that a solver updates and a
// collective sums one stretch of memory; each parameter begins at a multiple of 16 elements:
//   flatData()  | learnt parameters, in layer order | running statistics |
//   flatDiff()  | their gradients                   | what passes add    | kSpare elements |
// One thread uses a net at a time.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "layers/layer.h"
#include "layers/registry.h"
#include "model/trained.h"
#include "net/running_statistics.h"

namespace crema {
class Interrupt;
}
namespace crema::layers {
class RecordLayer;
}

namespace crema::net {

class Net;
struct NetOptions {
  const layers::LayerRegistry* registry = nullptr;  // nullptr: builtinLayers()
  kernels::Context* kernels = nullptr;
  DType dtype = DType::kFloat32;
  layers::DataOptions data;
  uint64_t seed = 1;
  bool log = false;   // Caffe's lines while building
  bool fills = true;  // false: only shapes are asked for; fillers do not run and memory stays untouched
  // Its weights are this net's as well (shareTrainedWith()), from the beginning: layers of its names fill no weights, which then
  // take no memory. It must live as long.
  const Net* sharesTrainedWith = nullptr;
  bool needsBackward = true;  // false: backward() is not called, and layers keep no copies for it
};

class Net {
 public:
  // A parameter, listed once: by its owner where several layers share it.
  struct Learnable {
    std::shared_ptr<Blob> blob;
    double lrMult = 1, decayMult = 1;
    // Set for running statistics: the factor f of a pass, over all layers that share them.
    std::optional<double> keptPerPass;
    int64_t offset = 0;  // in flatData() and flatDiff()
    std::string label;   // "conv1/0"
  };

  // `description` in any mix of phases; `state` picks the layers. `origin` (a file name) is for messages.
  Net(const caffe::NetParameter& description, const caffe::NetState& state, const NetOptions& options,
      const std::string& origin);
  ~Net();
  Net(const Net&) = delete;

  const std::string& name() const { return name_; }
  caffe::Phase phase() const { return phase_; }
  // Name the batch and the random numbers of the next forward: both are the step's, unless `draw` names the latter.
  void setStep(int64_t step, int rank, int64_t draw = -1);
  RunningStatistics& statistics() { return statistics_; }

  // Called around each layer's pass with its number; a pass that skips a layer skips its hooks. Any may be empty.
  struct Hooks {
    std::function<void(int layer)> beforeForward, afterForward, beforeBackward, afterBackward;
  };
  Hooks& hooks() { return hooks_; }
  bool isWatched() const {
    return hooks_.beforeForward || hooks_.afterForward || hooks_.beforeBackward || hooks_.afterBackward;
  }

  // Caffe's lines about every pass (debug_info.cc). At first what the description's debug_info says.
  void setDebugInfo(bool on) { debugInfo_ = on; }
  bool debugInfo() const { return debugInfo_; }

  // Between steps: other ranks are this process's, and test batches are shared out over other workers.
  void assign(const std::vector<int>& myRanks, int testWorkers);
  // What its layers carry from a rank's step to its next one (Layer::carriedBytes()).
  size_t carriedBytes() const;
  void saveCarried(int rank, char* to) const;
  void restoreCarried(int rank, const char* from);

  // From now on a pass ends between two layers, or where it waits for records, when it is raised; nullptr: none does. What
  // blobs hold is then of no use.
  void endPassesBy(const Interrupt* interrupt) { run_.interrupt = interrupt; }
  void checkInterrupt() const;

  double forward();  // the weighted sum of losses
  void backward();   // adds to parameter gradients
  double forwardTo(int lastLayer);
  double forwardRange(int firstLayer, int lastLayer);  // both included
  void backwardRange(int fromLayer, int downToLayer);  // both included
  void reshape();                                      // shapes of all tops, from what the caller gave the inputs
  double forwardLayer(int i);
  void backwardLayer(int i);
  void clearParamDiffs();

  const std::vector<std::unique_ptr<layers::Layer>>& layers() const { return layers_; }
  const std::vector<layers::RecordLayer*>& recordLayers() const { return recordLayers_; }  // in order
  const layers::Blobs& bottoms(int layer) const { return wires_[static_cast<size_t>(layer)].bottoms; }
  const layers::Blobs& tops(int layer) const { return wires_[static_cast<size_t>(layer)].tops; }
  const std::vector<std::string>& bottomNames(int layer) const {
    return wires_[static_cast<size_t>(layer)].bottomNames;
  }
  const std::vector<std::string>& topNames(int layer) const { return wires_[static_cast<size_t>(layer)].topNames; }
  bool needsBackward(int layer) const { return wires_[static_cast<size_t>(layer)].backward; }
  // For each bottom: whether backwardLayer() computes its gradient.
  const std::vector<bool>& propagateDown(int layer) const { return wires_[static_cast<size_t>(layer)].propagateDown; }
  bool sharesMemory(int layer) const;  // its tops are in the memory of its first bottom
  DType dtype() const { return options_.dtype; }
  bool hasLayer(const std::string& name) const;
  bool hasBlob(const std::string& name) const { return blobs_.count(name) > 0; }
  Blob& blob(const std::string& name) const;  // invalid() lists the known names
  std::vector<std::string> blobNames() const;
  // Blobs that no layer reads, in alphabetical order: what a test reports.
  const std::vector<std::string>& outputs() const { return outputs_; }
  double outputLossWeight(const std::string& output) const;
  int64_t memoryBytes() const;  // data and gradients of all blobs, parameters included

  const std::vector<Learnable>& learnables() const { return learnables_; }
  Blob& flatData() { return flatData_; }
  // kSpare elements more than flatData(): the net does not use them; they travel with the gradient (loss, requests).
  static constexpr int kSpare = 16;
  Blob& flatDiff() { return flatDiff_; }

  // Weights by layer name: layers the net lacks are skipped, layers the file lacks keep their values; counts and shapes
  // must fit. A file with owners only may lack parameters that a layer of this net shares with another.
  void copyTrainedFrom(const model::Trained& trained, const std::string& origin);
  // Layers with parameters; and those of them that got no values from a file and share none with a layer that did.
  std::vector<std::string> trainable() const, untrained() const;
  void shareTrainedWith(const Net& other);  // uses the other's memory; the other must live as long
  // ownersOnly: a blob shared with another layer, its owner, is stored without values (its gradient is kept).
  caffe::NetParameter toProto(bool withDiff, bool ownersOnly = false) const;
  // Where the first value that is not finite stands: "layer 'ip1' (InnerProduct), top 'ip1'"; empty when all are
  // finite.
  std::string firstNotFinite() const;
  std::string notFiniteIn(int layer) const;

 private:
  void logForward(int i) const;
  void logBackward(int i) const;
  void logBackwardSums() const;
  double keptSoFar(double perPass) const;
  double paramMean(const layers::Layer& layer, int param) const;
  void copyLayer(layers::Layer& target, const model::Trained& trained, int at, const std::string& origin);

  struct Wire {
    layers::Blobs bottoms, tops;
    std::vector<std::string> bottomNames, topNames;
    std::vector<bool> propagateDown;
    bool backward = false;
  };
  class Builder;

  std::string name_;
  caffe::Phase phase_ = caffe::TEST;
  NetOptions options_;
  layers::RunState run_;
  Hooks hooks_;
  bool debugInfo_ = false;
  std::vector<std::unique_ptr<layers::Layer>> layers_;
  std::vector<layers::RecordLayer*> recordLayers_;
  std::vector<Wire> wires_;
  std::map<std::string, std::shared_ptr<Blob>> blobs_;
  std::vector<std::shared_ptr<Blob>> unnamed_;  // tops without a name, added by loss layers
  std::vector<std::string> outputs_;
  std::vector<Learnable> learnables_;
  std::set<const Blob*> borrowed_;          // parameters that share an owner's memory
  std::set<const layers::Layer*> trained_;  // layers that a file gave values
  Blob flatData_, flatDiff_;
  RunningStatistics statistics_{run_.statistics, flatData_, flatDiff_};
};

// Weights of these files, in this order, for `net` and `others`. invalid() when `net` has parameters and no layer of it
// got any: it would go on with its fillers' random values.
void copyTrainedFiles(Net& net, const std::vector<std::string>& files, const std::vector<Net*>& others = {},
                      bool log = false);
std::vector<std::string> trainedFiles(
    const std::string& list);  // "a.caffemodel, b.caffemodel.h5"; invalid() without any
void copyTrainedFiles(Net& net, const std::string& list);
void warnOfUntrained(const Net& net, const std::string& files);  // for scoring: layers that keep random values

}  // namespace crema::net
