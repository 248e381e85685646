#include "solver/solver.h"

#include <climits>
#include <cmath>

#include "base/log.h"
#include "layers/record_layer.h"
#include "model/hdf5_model.h"
#include "model/proto_io.h"
#include "solver/descriptions.h"
#include "solver/lr_policy.h"
#include "solver/origin.h"
#include "solver/outputs.h"
#include "solver/rules.h"

namespace crema::solver {

Solver::Solver(const caffe::SolverParameter& param, const SolverOptions& options) : param_(param), options_(options) {
  checkSolver(param_);
  buildNets();
  checkSizes();
  history_ = Blob(Shape{ruleOf(param_).histories, net_->flatData().count()}, options_.dtype);
  history_.fillData(0);
  if (net_->learnables().empty())
    invalid("the train net '{}' has nothing to learn: no layer has parameters", net_->name());
  if (param_.snapshot_format() != caffe::SolverParameter::HDF5) return;
  std::vector<std::pair<std::string, int>> layers;
  for (const auto& layer : net_->layers()) layers.emplace_back(layer->name(), layer->params().size());
  model::checkHdf5Layers(layers);  // fails before training, not at the first snapshot
}

// Both files are messages of protobuf, of HDF5 on their way. Before training, and not at the first snapshot.
void Solver::checkSizes() const {
  constexpr int64_t kMost = INT_MAX, kBeside = 4 << 20;  // names and descriptions
  const int64_t each = static_cast<int64_t>(sizeOf(options_.dtype)) * net_->flatData().count();
  const auto check = [&](const char* what, int64_t copies, const char* remedy) {
    if (copies * each + kBeside > kMost)
      invalid("{} of {} parameters takes {} MiB, and no file of Caffe's can have more than 2,047: {}", what,
              net_->flatData().count(), copies * each >> 20, remedy);
  };
  if (param_.snapshot_prefix().empty() || (param_.snapshot() == 0 && !param_.snapshot_after_train())) return;
  check("a .caffemodel", param_.snapshot_diff() ? 2 : 1,
        "make the net smaller, or write none (snapshot: 0 snapshot_after_train: false)");
  check("a .solverstate", ruleOf(param_).histories,
        "take a type that keeps fewer numbers for each (SGD, Nesterov, AdaGrad, RMSProp: one), or write none "
        "(snapshot: 0 snapshot_after_train: false)");
}

void Solver::buildNets() {
  net::NetOptions o;
  o.registry = options_.registry;
  o.kernels = options_.kernels;
  o.dtype = options_.dtype;
  o.seed = options_.seed;
  o.log = options_.log;
  o.data = options_.trainData;
  o.data.stepsPerRank = param_.iter_size();
  o.data.folder = options_.folder;
  const NetDescription train = trainDescription(param_, options_.folder, options_.origin);
  if (options_.log) {
    LOG_INFO("Initializing solver from parameters: \n{}", model::toText(withoutInlined(param_, options_.origin)));
    warnOfUnusual(param_);
    LOG_INFO("Creating training net {}", train.said);
  }
  net_ = std::make_unique<net::Net>(train.param, train.state, o, train.origin);
  netDigest_ = digestOfNet(train.param, train.state);
  if (!options_.hostLooks)
    plan_.emplace(*net_, net::TrainingPlan::Options{.mayDefer = mayDefer(), .maySeparate = param_.debug_info()});
  o.data = options_.testData;
  o.data.ranks = 1, o.data.myRanks = {0}, o.data.stepsPerRank = 1;
  o.needsBackward = options_.hostLooks;
  o.sharesTrainedWith = net_.get();
  // Recurrent state: with one rank test batches continue each other; with several each begins at zero, so that the
  // number of workers changes nothing.
  o.data.use = options_.trainData.ranks == 1 ? layers::PassUse::kTest : layers::PassUse::kSharedTest;
  o.data.folder = options_.folder;
  const auto tests = testDescriptions(param_, options_.folder, options_.origin);
  for (size_t i = 0; i < tests.size(); ++i) {
    if (options_.log) LOG_INFO("Creating test net (#{}) specified by {}", i, tests[i].said);
    testNets_.push_back(std::make_unique<net::Net>(tests[i].param, tests[i].state, o, tests[i].origin));
    testNets_.back()->setDebugInfo(param_.debug_info() && options_.log);
  }
  if (options_.log) LOG_INFO("Solver scaffolding done.");
}

// Gradients that nobody else looks at. With several ranks all processes do the same, but one alone prints.
bool Solver::mayDefer() const {
  return !options_.hostLooks && param_.iter_size() == 1 && param_.clip_gradients() < 0 && !param_.snapshot_diff() &&
         (options_.trainData.ranks == 1 || !param_.debug_info());
}

bool Solver::defersGradients() const { return mayDefer() && (options_.trainData.ranks == 1 || plan_->sharesFactors()); }

double Solver::computeGradient(int rank, const std::function<void(int64_t from)>& done,
                               const std::function<void()>& further) {
  plan_ ? plan_->clearParamDiffs() : net_->clearParamDiffs();
  net_->statistics().collect();
  const bool display = param_.display() && iteration() % param_.display() == 0;
  net_->setDebugInfo(param_.debug_info() && display && options_.log && rank == options_.trainData.myRanks.front());
  double loss = 0;
  for (int sub = 0; sub < param_.iter_size(); ++sub) {
    if (sub > 0 && further) further();
    net_->setStep(static_cast<int64_t>(iteration()) * param_.iter_size() + sub, rank);
    const double part = plan_ ? plan_->forward() : net_->forward();
    if (!std::isfinite(part)) {
      const std::string where = plan_ ? plan_->firstNotFinite() : net_->firstNotFinite();
      invalid(
          "the loss is {} in iteration {} (rank {}); the first value that is not finite stands in {}. {}",
          std::isnan(part) ? std::abs(part) : part,  // without the sign that x86 gives NaN

          iteration(), rank, where.empty() ? "the loss itself" : where,
          iteration() == 0
              ? "Nothing was learned yet: check the data, the fillers and loaded weights for NaN and for "
                "large values"
              : fmt::format("Lower base_lr (now {}), set clip_gradients, or check the data for NaN", param_.base_lr()));
    }
    loss += part;
    if (defersGradients()) plan_->deferGradients();
    plan_ ? plan_->backward(sub + 1 == param_.iter_size() ? done : nullptr) : net_->backward();
  }
  return loss / param_.iter_size();
}

double Solver::evaluate(int rank) {
  net_->statistics().collect();
  net_->setStep(static_cast<int64_t>(iteration()) * param_.iter_size(), rank);
  return plan_ ? plan_->forward() : net_->forward();
}

double Solver::smoothLoss(double loss) {
  const auto window = static_cast<size_t>(param_.average_loss());
  if (losses_.empty()) smoothed_ = 0;
  if (losses_.size() < window) {
    losses_.push_back(loss);
    const auto size = static_cast<double>(losses_.size());
    smoothed_ = (smoothed_ * (size - 1) + loss) / size;
  } else {
    smoothed_ += (loss - losses_.front()) / static_cast<double>(window);
    losses_.pop_front();
    losses_.push_back(loss);
  }
  return smoothed_;
}

void Solver::assign(const std::vector<int>& myRanks, int testWorkers) {
  options_.trainData.myRanks = myRanks, options_.testData.testWorkers = testWorkers;
  net_->assign(myRanks, options_.trainData.testWorkers);
  for (const auto& net : testNets_) net->assign({0}, testWorkers);
}

void Solver::endPassesBy(const Interrupt* interrupt) {
  net_->endPassesBy(interrupt);
  for (const auto& net : testNets_) net->endPassesBy(interrupt);
}

std::vector<double> Solver::position() const {
  std::vector<double> all = {static_cast<double>(iteration()), static_cast<double>(currentStep_), smoothed_,
                             static_cast<double>(losses_.size())};
  const size_t fixed = all.size();
  all.insert(all.end(), losses_.begin(), losses_.end());
  all.resize(fixed + static_cast<size_t>(param_.average_loss()));
  return all;
}

void Solver::setPosition(const std::vector<double>& position) {
  iteration_ = static_cast<int>(position[0]), currentStep_ = static_cast<int>(position[1]), smoothed_ = position[2];
  losses_.assign(position.begin() + 4, position.begin() + 4 + static_cast<std::ptrdiff_t>(position[3]));
}

template <class T>
double Solver::clipScale(const T* gradient, int ranks) const {
  const double limit = param_.clip_gradients();
  if (limit < 0) return 1;
  double squares = 0;
  for (const auto& p : net_->learnables())
    if (!p.keptPerPass) squares += kernels::sumOfSquares<T>(*options_.kernels, p.blob->count(), gradient + p.offset);
  const double norm = std::sqrt(squares) / ranks;
  if (!(norm > limit)) return 1;
  if (options_.log)
    LOG_INFO("Gradient clipping: scaling down gradients (L2 norm {:.6g} > {:.6g}) by scale factor {:.6g}", norm, limit,
             limit / norm);
  return limit / norm;
}

double Solver::rate() const { return learningRate(param_, iteration(), stageAt(param_, iteration(), currentStep_)); }

void Solver::moveStage() {
  const int stage = stageAt(param_, iteration(), currentStep_);
  if (stage != currentStep_ && param_.lr_policy() == "multistep")  // Caffe logs nothing for step
    LOG_INFO("MultiStep Status: Iteration {}, step = {}", iteration(), stage);
  currentStep_ = stage;
}

template <class T>
void Solver::update(const T* gradient, int ranks) {
  moveStage();
  lastRate_ = learningRate(param_, iteration(), currentStep_);
  if (options_.log && param_.display() && iteration() % param_.display() == 0)
    LOG_INFO("Iteration {}, lr = {:.6g}", iteration(), lastRate_);
  kernels::Update u = updateOf(param_, lastRate_, iteration());
  u.scale = clipScale(gradient, ranks) / (static_cast<double>(param_.iter_size()) * ranks);
  for (const auto& p : net_->learnables()) {
    if (p.lrMult == 0) continue;
    u.rate.multiplier = p.lrMult;
    u.decay = static_cast<double>(param_.weight_decay()) * p.decayMult;
    T* histories = history_.mutableData<T>() + p.offset;
    const int64_t stride = net_->flatData().count();
    if constexpr (std::is_same_v<T, float>)
      if (plan_ && plan_->updateDeferred(*p.blob, u, histories, stride)) continue;
    kernels::update<T>(*options_.kernels, p.blob->count(), u, gradient + p.offset, histories, stride,
                       net_->flatData().mutableData<T>() + p.offset);
  }
  net_->statistics().move(gradient, ranks, param_.iter_size());
  ++iteration_;
}
template void Solver::update<float>(const float*, int);
template void Solver::update<double>(const double*, int);

int64_t Solver::recordsSkipped() const {
  int64_t all = 0;
  const auto add = [&](const net::Net& net) {
    for (const auto* layer : net.recordLayers()) all += layer->skippedRecords();
  };
  add(*net_);
  for (const auto& net : testNets_) add(*net);
  return all;
}

double Solver::waitedForRecords() const {
  double all = 0;
  for (const auto* layer : net_->recordLayers()) all += layer->waited();
  return all;
}

std::string Solver::recordsRead() const {
  std::string all;
  const auto add = [&](const net::Net& net, const char* phase) {
    for (const auto* layer : net.recordLayers())
      if (const std::string f = layer->comparison(); !f.empty())
        all += fmt::format("{}{} layer '{}': {}", all.empty() ? "" : "; ", phase, layer->name(), f);
  };
  add(*net_, "TRAIN");
  for (const auto& net : testNets_) add(*net, "TEST");
  return all;
}

caffe::StateOrigin Solver::origin() const {
  if (recordsDigest_.empty()) {
    std::vector<std::string> read;
    for (const auto* layer : net_->recordLayers()) read.push_back(layer->fingerprint());
    // Of a host's rows the count alone is known: where they come from must serve.
    const bool known = !std::holds_alternative<layers::FromHost>(options_.trainData.source);
    const auto train = trainDescription(param_, options_.folder);
    recordsDigest_ = digestOfRecords(read, known ? caffe::NetParameter() : train.param, train.state);
  }
  caffe::StateOrigin origin;
  *origin.mutable_settings() = settingsOf(param_);
  origin.set_net(netDigest_), origin.set_solver(digestOfSolver(origin.settings()));
  origin.mutable_settings()->clear_weights();  // their paths are for nobody else to read
  origin.set_records(recordsDigest_);
  origin.set_random_seed(static_cast<int64_t>(options_.seed)), origin.set_ranks(options_.trainData.ranks);
  return origin;
}

bool Solver::testDue() const {
  return param_.test_interval() > 0 && !testNets_.empty() && iteration() % param_.test_interval() == 0 &&
         (iteration() > 0 || param_.test_initialization());
}

int64_t Solver::firstTestBatch(size_t i) const {
  const int before = iteration() / param_.test_interval() - (param_.test_initialization() ? 0 : 1);
  return static_cast<int64_t>(before) * param_.test_iter(static_cast<int>(i));
}

int Solver::testValues(size_t i) {
  int count = 1;
  for (const auto& name : testNets_[i]->outputs()) count += testNets_[i]->blob(name).count();
  return count;
}

int64_t Solver::testCycle(size_t i) const {
  for (const auto* layer : testNets_[i]->recordLayers())
    if (const int64_t cycle = layer->testCycle()) return cycle;
  return 0;
}

std::vector<float> Solver::testBatch(size_t i, int64_t batch) {
  net::Net& net = *testNets_[i];
  net.setStep(batch, 0);
  const double loss = options_.hostLooks
                          ? net.forward()
                          : testPlans_.try_emplace(i, net, std::set<std::string>(), &*plan_).first->second.forward();
  const std::vector<double> outputs = outputValues(net);
  std::vector<float> values(outputs.begin(), outputs.end());
  values.push_back(static_cast<float>(loss));
  return values;
}

}  // namespace crema::solver
