// A layer: from bottom blobs to top blobs and, backwards, from top gradients to bottom and parameter gradients.
//
// The base class owns the order; authors fill in steps:
//   setUp     check blob counts -> configure (once: options, parameters) -> reshape -> loss weights
//   forward   reshape -> compute -> loss = sum of dot(top.data, top.diff) over tops with a loss weight
//   backward  gradient; parameter diffs are added to, bottom diffs are overwritten
// Layers are not templates: T is chosen once per call by withType(), so any net can run in double to be checked.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/random.h"
#include "caffe.pb.h"
#include "kernels/kernels.h"
#include "tensor/blob.h"

namespace crema::data {
class RecordSource;
}

namespace crema::layers {

// What a pass of training does with running statistics (Layer::addStatistic).
enum class StatisticsMode {
  kCollect,  // leaves what it adds to them in the diffs: diff <- kept diff + addend
  kMove,     // moves them at once
  kFixed,    // nothing: tests of a solver, scoring
};

// Where in the run a pass is. Every random number is named by it, and data layers find their batch by it.
struct RunState {
  uint64_t seed = 1;
  int64_t step = 0;  // iteration * iter_size + sub-step
  int rank = 0;
  int64_t draw = -1;  // names the random numbers instead of step, where a host program runs parts of a net
  StatisticsMode statistics = StatisticsMode::kCollect;
};

// What the passes of a net are for.
enum class PassUse {
  kTraining,    // one after the other; also those that a program asks for
  kTest,        // of a solver, and all its batches are computed here, one after the other
  kSharedTest,  // of a solver, and its batches are shared out: each stands for itself
  kScoring,     // every record once, in order, the last batch short: pass k is batch k
};

// Where the records of data layers come from.
struct FromPrototxt {};  // as the layer says
struct FromPath {        // instead of what the layer says
  std::string path;
};
struct FromHost {
  std::shared_ptr<const data::RecordSource> records;
  bool rows = false;  // of a host program (data/row.h); else a database that was opened elsewhere
};
struct FromBlobs {  // blobs of the next pass, set by the owner; the first batch_size samples are taken
  const std::vector<const Blob*>* blobs;
};
struct FromNowhere {};  // planning: shapes as the layer says, and no file is opened that they can do without
using DataSource = std::variant<FromPrototxt, FromPath, FromHost, FromBlobs, FromNowhere>;

// What data layers need to know about the run; the same for the life of a net.
struct DataOptions {
  PassUse use = PassUse::kTraining;
  DataSource source;
  int ranks = 1;                   // R: blocks of batch_size records are assigned to ranks in turn
  std::vector<int> myRanks = {0};  // the ranks this process computes, ascending
  int stepsPerRank = 1;            // iter_size: consecutive batches of one rank
  int testWorkers = 1;             // processes that share out the test batches (data/shard.h)
  int64_t last = -1;               // scoring ends before this record; -1: at the end
  bool resize = false;             // images take the height and width that MemoryData or CoSData names
  std::string folder;              // relative paths of the prototxt start here; empty: the working folder

  bool tests() const { return use == PassUse::kTest || use == PassUse::kSharedTest; }
  // Whether files that shapes can do without are opened.
  bool opensSources() const {
    return !std::holds_alternative<FromBlobs>(source) && !std::holds_alternative<FromNowhere>(source);
  }
  const std::string& pathOr(const std::string& written) const {
    const auto* given = std::get_if<FromPath>(&source);
    return given ? given->path : written;
  }
};

// Who else uses the memory of a layer's tops (net/memory_use.h).
struct MemoryUse {
  std::set<std::string> overwriters;  // types of layers that work in place there later
  std::set<int> ownTops;              // of a Split: tops that take a copy, since the memory of the others changes
};

struct LayerContext {
  kernels::Context* kernels = nullptr;
  DType dtype = DType::kFloat32;
  caffe::Phase phase = caffe::TEST;
  const RunState* run = nullptr;
  const DataOptions* data = nullptr;
  bool fills = true;     // false: parameters stay zero; their fillers are judged all the same
  bool goesBack = true;  // false: nobody will ask for gradients
  MemoryUse memory;
  int twin = 0;  // layers before it that have its name: their random numbers are others
};

using Blobs = std::vector<Blob*>;

// An item of the batch holds what no layer can use; the net adds which record it was.
class BadItem : public Error {
 public:
  BadItem(int item, std::string what) : Error(ErrorKind::kData, std::move(what)), item_(item) {}
  int item() const { return item_; }

 private:
  int item_;
};
template <class... A>
[[noreturn]] void badItem(int item, fmt::format_string<A...> text, A&&... args) {
  throw BadItem(item, fmt::format(text, std::forward<A>(args)...));
}

class Layer {
 public:
  Layer(caffe::LayerParameter param, const LayerContext& context) : param_(std::move(param)), context_(context) {}
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;

  void setUp(const Blobs& bottom, const Blobs& top);
  double forward(const Blobs& bottom, const Blobs& top);
  void shapeTops(const Blobs& bottom, const Blobs& top);  // forward's first step alone
  void backward(const Blobs& top, const std::vector<bool>& propagateDown, const Blobs& bottom);

  const caffe::LayerParameter& param() const { return param_; }
  const std::string& name() const { return param_.name(); }
  const std::string& type() const { return param_.type(); }
  std::string label() const { return "layer '" + name() + "' (" + type() + ")"; }
  std::vector<std::shared_ptr<Blob>>& params() { return params_; }
  const std::vector<std::shared_ptr<Blob>>& params() const { return params_; }
  double lossWeight(int top) const;
  void setLossWeight(int top, double weight);
  void setParamPropagate(int i, bool on);
  bool paramPropagates(int i) const;

  // What Net has to know before it wires the layer.
  struct Arity {
    int minBottoms = 1, maxBottoms = 1, minTops = 1, maxTops = 1;  // max -1: any number
    bool sameCount = false;                                        // as many tops as bottoms
    bool makesTop = false;                                         // an absent top is made (loss layers)
  };
  virtual Arity arity() const { return {}; }
  virtual bool isLoss() const { return false; }
  // What a bottom holds that takes no gradient ("labels"); backward() refuses to be asked for one. nullptr: it takes
  // one.
  virtual const char* withoutGradient(int /*bottom*/) const { return nullptr; }
  virtual bool allowsForceBackward(int bottom) const { return !withoutGradient(bottom); }
  virtual bool allowsInPlace() const { return false; }
  // Of a parameter that holds running statistics: what a pass keeps of it. Nothing: a parameter that gradients reach.
  std::optional<double> keptPerPass(int param) const;
  // Products of a forward pass that are added up with weights; what a layer does besides is not counted.
  virtual int64_t multiplyAdds(const Blobs& /*bottom*/, const Blobs& /*top*/) const { return 0; }

 protected:
  virtual void configure(const Blobs& /*bottom*/, const Blobs& /*top*/) {}
  virtual void reshape(const Blobs& bottom, const Blobs& top) = 0;
  virtual void compute(const Blobs& bottom, const Blobs& top) = 0;
  // Also before any compute(), or after a reshape() that followed it: what both use gets its size in reshape().
  virtual void gradient(const Blobs& top, const std::vector<bool>& propagateDown, const Blobs& bottom) = 0;

  kernels::Context& kernels() const { return *context_.kernels; }
  const LayerContext& context() const { return context_; }
  bool training() const { return context_.phase == caffe::TRAIN; }
  std::string randomName() const { return context_.twin ? fmt::format("{}#{}", name(), context_.twin) : name(); }
  // The stream of this layer for the present step and rank; counters are the author's.
  RandomStream random(RandomPurpose purpose) const;
  // Adds a parameter: filled from `filler`, or taken from layer_param.blobs when the description carries weights.
  void addParam(const Shape& shape, const caffe::FillerParameter& filler);
  // Adds a parameter, zero at first, that no gradient reaches but passes of training change: running statistics. A pass
  // of one rank makes p <- kept p + addend; net/running_statistics.h. Its lr_mult must be 0.
  void addStatistic(const Shape& shape, double kept);
  template <class T>
  void addToStatistic(int param, const double* addends);

  caffe::LayerParameter param_;

 private:
  void checkCounts(const Blobs& bottom, const Blobs& top) const;
  void placeLossWeights(const Blobs& top);
  void rememberShapes(const Blobs& bottom, const Blobs& top);
  void checkShapes(const Blobs& bottom, const Blobs& top) const;

  LayerContext context_;
  std::vector<Shape> shapes_;  // of bottoms and tops after the last forward or reshape: gradient() may rely on them
  std::vector<std::shared_ptr<Blob>> params_;
  std::map<int, double> kept_;  // of parameters that hold running statistics
  std::vector<bool> paramPropagate_;
  std::vector<double> lossWeights_;
};

// Fills a blob by its FillerParameter; keyed by seed and name, so that no stream depends on what ran before. Formulas:
// fill.cc.
void fill(const caffe::FillerParameter& filler, uint64_t seed, std::string_view name, Blob& blob);
void checkFiller(const caffe::FillerParameter& filler, const Shape& shape);  // what fill() would refuse
// A trained blob of a .caffemodel as a shape (legacy num/channels/height/width included) and its values copied into
// blob.
Shape shapeOf(const caffe::BlobProto& proto);
bool shapeMatches(const caffe::BlobProto& proto,
                  const Shape& shape);                      // legacy 4-D blobs match right-aligned, padded with 1
void fromProto(const caffe::BlobProto& proto, Blob& blob);  // counts must agree (kData)
void toProto(const Blob& blob, bool withDiff, caffe::BlobProto* proto);

}  // namespace crema::layers
