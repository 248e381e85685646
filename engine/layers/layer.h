// A layer: from bottom blobs to top blobs and, backwards, from top gradients to bottom and parameter gradients.
//
// The base class calls these steps in order; layers implement configure, reshape, compute and gradient:
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

namespace crema {
class Interrupt;
}
namespace crema::data {
class RecordSource;
}

namespace crema::layers {

// What a training pass does with running statistics (Layer::addStatistic).
enum class StatisticsMode {
  kCollect,  // collects their changes in the diffs: diff <- kept diff + addend
  kMove,     // updates them at once
  kFixed,    // leaves them alone: tests of a solver, scoring
};

// The position of a pass in the run, which keys every random number and selects batches.
struct RunState {
  uint64_t seed = 1;
  int64_t step = 0;  // iteration * iter_size + sub-step
  int rank = 0;
  int64_t draw = -1;  // replaces step as key of random numbers, where a host program runs parts of a net
  StatisticsMode statistics = StatisticsMode::kCollect;
  const Interrupt* interrupt = nullptr;  // ends waits for records
};

// What the passes of a net are for.
enum class PassUse {
  kTraining,    // in sequence; also passes that a host program calls
  kTest,        // of a solver: all its batches are computed here in sequence
  kSharedTest,  // of a solver: batches are sharded over workers, so each is independent
  kScoring,     // every record once, in order, the last batch short: pass k is batch k
};

// Where the records of data layers come from.
struct FromPrototxt {};  // the layer's own source
struct FromPath {        // replaces the layer's source
  std::string path;
};
struct FromHost {
  std::shared_ptr<const data::RecordSource> records;
  bool rows = false;  // true: rows of a host program (data/row.h); false: an open database
};
struct FromBlobs {  // blobs of the next pass, set by the owner; the first batch_size samples are taken
  const std::vector<const Blob*>* blobs;
};
struct FromNowhere {};  // planning: shapes from the layer's options; opens only files that shapes depend on
using DataSource = std::variant<FromPrototxt, FromPath, FromHost, FromBlobs, FromNowhere>;

// The run's settings for data layers; constant for the life of a net, but for myRanks and testWorkers (Net::assign()).
struct DataOptions {
  PassUse use = PassUse::kTraining;
  DataSource source;
  int ranks = 1;                   // R: blocks of batch_size records are assigned to ranks in turn
  std::vector<int> myRanks = {0};  // the ranks this process computes, ascending
  int stepsPerRank = 1;            // iter_size: consecutive batches of one rank
  int testWorkers = 1;             // processes over which test batches are sharded (data/shard.h)
  int64_t last = -1;               // scoring ends before this record; -1: at the end
  bool resize = false;             // resize images to the height and width of MemoryData or CoSData
  bool compareAll = false;         // workers compare all records, however many (RecordLayer::comparison())
  std::string folder;              // relative paths of the prototxt start here; empty: the working folder

  bool tests() const { return use == PassUse::kTest || use == PassUse::kSharedTest; }
  // Whether to open files that shapes do not depend on.
  bool opensSources() const {
    return !std::holds_alternative<FromBlobs>(source) && !std::holds_alternative<FromNowhere>(source);
  }
  const std::string& pathOr(const std::string& written) const {
    const auto* given = std::get_if<FromPath>(&source);
    return given ? given->path : written;
  }
};

// Which other layers use the memory of a layer's tops (net/memory_use.h).
struct MemoryUse {
  std::set<std::string> overwriters;  // types of later layers that overwrite it in place
  // Of a Split: tops that need a copy, as a layer in place overwrites the shared memory.
  std::set<int> ownTops;
};

struct LayerContext {
  kernels::Context* kernels = nullptr;
  DType dtype = DType::kFloat32;
  caffe::Phase phase = caffe::TEST;
  const RunState* run = nullptr;
  const DataOptions* data = nullptr;
  bool fills = true;          // false: parameters and DummyData stay zero; fillers are checked but not run
  bool fillsParams = true;    // false: the same, for parameters alone
  bool needsBackward = true;  // false: backward() will not be called
  MemoryUse memory;
  int sameNameBefore = 0;  // number of earlier layers of the same name; part of the key of random numbers
};

using Blobs = std::vector<Blob*>;

// An item of the batch has unusable values; the net adds which record it was.
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
  void shapeTops(const Blobs& bottom, const Blobs& top);  // only the reshape step of forward()
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

  // The gradients of its parameters hold nothing: the next backward() sets them, with the bits that adding to zeros gives.
  // Only for layers that set them; it saves large ones a pass that clears and one that reads.
  virtual bool setsGradients() const { return false; }
  void expectNoGradients() { noGradients_ = true; }
  // Whether its first parameter is the weights of an inner product, whose gradient the solver's update can compute from the
  // values of the first bottom and the gradient of the first top, which are much smaller.
  virtual bool canDefer() const { return false; }
  void deferGradient(bool on) { defers_ = on; }  // the next backward() leaves that of these weights to updateDeferred()
  virtual kernels::IpShape deferredShape() const { return {}; }  // of the last forward()
  virtual void updateDeferred(const kernels::IpFactors<float>& /*factors*/, const kernels::Update& /*u*/,
                              float* /*histories*/, int64_t /*stride*/) {}

  // What Net needs to know before it connects the layer.
  struct Arity {
    int minBottoms = 1, maxBottoms = 1, minTops = 1, maxTops = 1;  // max -1: any number
    bool sameCount = false;                                        // as many tops as bottoms
    bool makesTop = false;                                         // a missing top is added (loss layers)
  };
  virtual Arity arity() const { return {}; }
  virtual bool isLoss() const { return false; }
  // Names the contents of a bottom that has no gradient ("labels"), for which backward() throws; nullptr: it has one.
  virtual const char* withoutGradient(int /*bottom*/) const { return nullptr; }
  virtual bool allowsForceBackward(int bottom) const { return !withoutGradient(bottom); }
  virtual bool allowsInPlace() const { return false; }
  // For running statistics: the factor that a pass keeps of them. nullopt: a parameter with a gradient.
  std::optional<double> keptPerPass(int param) const;
  // A step (kernels/epilogue.h) changes this bottom's numbers one by one in a pass that no backward pass follows, so that
  // a layer below that takes steps can do it on its outputs. Only for 32-bit floats.
  virtual bool isStep(const Blobs& /*bottom*/, int /*at*/) const { return false; }
  virtual bool takesSteps(const Blobs& /*bottom*/) const { return false; }
  // Shapes the top and adds the steps behind those that are there; what they point to lasts until the next call.
  void addSteps(const Blobs& bottom, const Blobs& top, int at, kernels::Epilogue<float>* steps);
  // forward() into `to`, which has the shape of the top.
  void forwardInto(const Blobs& bottom, const kernels::Epilogue<float>& steps, Blob* to);
  // Whose values gradient() reads. What no backward pass reads may be overwritten behind the forward pass.
  struct Reads {
    bool bottoms = true, tops = true;
  };
  virtual Reads readsBackward() const { return {}; }
  // Of a layer without bottoms: whether each forward pass writes all of its tops, so that they may be overwritten in between.
  virtual bool renewsTops() const { return false; }
  // What a rank's pass leaves for its next one, such as an LSTM's state: as bytes, the same number for each rank. Zero: this
  // layer has nothing of the kind.
  virtual size_t carriedBytes() const { return 0; }
  virtual void saveCarried(int /*rank*/, char* /*to*/) const {}
  virtual void restoreCarried(int /*rank*/, const char* /*from*/) {}
  // The multiply-adds with weights in one forward pass; other work is not counted.
  virtual int64_t multiplyAdds(const Blobs& /*bottom*/, const Blobs& /*top*/) const { return 0; }

 protected:
  virtual void configure(const Blobs& /*bottom*/, const Blobs& /*top*/) {}
  virtual void reshape(const Blobs& bottom, const Blobs& top) = 0;
  virtual void compute(const Blobs& bottom, const Blobs& top) = 0;
  virtual void steps(const Blobs& /*bottom*/, int /*at*/, kernels::Epilogue<float>* /*steps*/) {}
  virtual void computeInto(const Blobs& /*bottom*/, const kernels::Epilogue<float>& /*steps*/, Blob* /*to*/) {}
  // May be called before any compute(), or after another reshape(): so reshape() must size all memory that both use.
  virtual void gradient(const Blobs& top, const std::vector<bool>& propagateDown, const Blobs& bottom) = 0;

  kernels::Context& kernels() const { return *context_.kernels; }
  const LayerContext& context() const { return context_; }
  bool training() const { return context_.phase == caffe::TRAIN; }
  bool addsGradients() const { return !noGradients_; }
  bool defersGradient() const { return defers_; }
  std::string randomName() const {
    return context_.sameNameBefore ? fmt::format("{}#{}", name(), context_.sameNameBefore) : name();
  }
  // This layer's random numbers for the present step and rank; the layer chooses the counters.
  RandomStream random(RandomPurpose purpose) const;
  // Adds a parameter: filled from `filler`, or copied from layer_param.blobs when the description contains weights.
  void addParam(const Shape& shape, const caffe::FillerParameter& filler);
  // Adds running statistics: a parameter that starts at zero and is changed by training passes, not by gradients. A
  // pass of one rank makes p <- kept p + addend; net/running_statistics.h. Its lr_mult must be 0.
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
  // Of bottoms and tops at the last forward or reshape; backward() checks that they still hold.
  std::vector<Shape> shapes_;
  std::vector<std::shared_ptr<Blob>> params_;
  std::map<int, double> kept_;  // by index of a parameter with running statistics
  std::vector<bool> paramPropagate_;
  bool noGradients_ = false, defers_ = false;  // in the next backward()
  std::vector<double> lossWeights_;
};

// Fills a blob by its FillerParameter; random numbers are keyed by seed and name. Formulas: fill.cc.
void fill(const caffe::FillerParameter& filler, uint64_t seed, std::string_view name, Blob& blob);
void checkFiller(const caffe::FillerParameter& filler, const Shape& shape);  // throws what fill() would
// A trained blob of a .caffemodel as a shape (legacy num/channels/height/width included) and its values copied into
// blob.
Shape shapeOf(const caffe::BlobProto& proto);
bool shapeMatches(const caffe::BlobProto& proto,
                  const Shape& shape);                      // legacy 4-D blobs match right-aligned, padded with 1
void checkStoredCount(int64_t values, const Blob& place);   // kData where they differ
void fromProto(const caffe::BlobProto& proto, Blob& blob);  // counts must agree (kData)
void toProto(const Blob& blob, bool withDiff, caffe::BlobProto* proto);

}  // namespace crema::layers
