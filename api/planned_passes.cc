#include "api/planned_passes.h"

#include <algorithm>

#include "api/handles.h"

namespace crema::api {
namespace {

std::unique_ptr<Blob> copyOf(const Blob& blob) {
  auto copy = std::make_unique<Blob>(blob.shape(), blob.dtype());
  copy->copyDataFrom(blob);
  return copy;
}

void put(const Blob& from, Blob* to) {
  to->reshape(from.shape());
  to->copyDataFrom(from);
}

// Whether a second pass over the same bottoms is as if there were none: nothing else is read, kept, moved or written.
bool canRepeat(const layers::Layer& layer, const layers::Blobs& bottoms, const layers::Blobs& tops) {
  if (bottoms.empty() || instanceOf(layer) >= 0 || layer.carriedBytes() > 0) return false;
  if (tops.empty() && layer.type() != "Silence") return false;  // it has another effect
  for (size_t p = 0; p < layer.params().size(); ++p)
    if (layer.keptPerPass(static_cast<int>(p)) && !layer.isStep(bottoms, 0)) return false;  // running statistics move
  return true;
}

}  // namespace

PlannedPasses::PlannedPasses(std::shared_ptr<Compute> compute, std::shared_ptr<net::Net> net)
    : compute_(std::move(compute)), net_(std::move(net)) {
  bool can = net_->phase() == caffe::TEST && !net_->debugInfo();
  for (int i = 0; i < static_cast<int>(net_->layers().size()); ++i) {
    const layers::Layer& layer = *net_->layers()[static_cast<size_t>(i)];
    const bool isInput = layer.type() == "Input";
    if (isInput) inputs_.insert(inputs_.end(), net_->tops(i).begin(), net_->tops(i).end());
    can = can && (isInput || canRepeat(layer, net_->bottoms(i), net_->tops(i)));
  }
  open_.insert(inputs_.begin(), inputs_.end());
  for (const std::string& name : net_->outputs()) open_.insert(&net_->blob(name));
  planning_ = can && !inputs_.empty();
}

std::vector<Shape> PlannedPasses::inputShapes() const {
  std::vector<Shape> shapes;
  for (const Blob* b : inputs_) shapes.push_back(b->shape());
  return shapes;
}

bool PlannedPasses::plan() {
  if (plan_ && planned_ == inputShapes()) return true;
  if (plan_) plan_->giveBack();
  plan_.reset(), last_.reset();
  try {
    net_->reshape();
  } catch (const Error&) {
    return false;  // the pass says it, with the layer where it ends
  }
  std::set<std::string> kept;
  for (const auto& layer : net_->layers())
    if (layer->type() == "Input")
      for (int i = 0; i < layer->param().top_size(); ++i) kept.insert(layer->param().top(i));
  plan_ = std::make_unique<net::ScoringPlan>(*net_, kept);
  planned_ = inputShapes();
  if (!frozen_) frozen_ = std::make_unique<kernels::FrozenWeights>(compute_->kernels);
  return true;
}

std::optional<double> PlannedPasses::forward(int64_t step, int64_t draw) {
  if (!planning_) return std::nullopt;
  if (net_->isWatched() || net_->debugInfo()) return end(), std::nullopt;
  if (!plan()) return std::nullopt;
  Pass pass{step, draw, {}, false};
  if (last_) pass.inputs = std::move(last_->inputs);  // their memory is there still
  last_.reset();
  pass.inputs.resize(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (pass.inputs[i])
      put(*inputs_[i], pass.inputs[i].get());
    else
      pass.inputs[i] = copyOf(*inputs_[i]);
  }
  net_->setStep(step, 0, draw);
  const double loss = plan_->forward();
  last_ = std::move(pass);
  return loss;
}

void PlannedPasses::end() {
  weightsChange();
  planning_ = false;
}

void PlannedPasses::weightsChange() {
  if (!planning_) return;
  if (plan_) plan_->giveBack();
  plan_.reset(), frozen_.reset();
  makeUp();
}

// Inputs may have other values and shapes since.
void PlannedPasses::makeUp() {
  if (!last_) return;
  std::vector<std::unique_ptr<Blob>> now;
  for (size_t i = 0; i < inputs_.size(); ++i) now.push_back(copyOf(*inputs_[i])), put(*last_->inputs[i], inputs_[i]);
  net_->setStep(last_->step, 0, last_->draw);
  net_->forwardRange(0, static_cast<int>(net_->layers().size()) - 1);
  for (size_t i = 0; i < inputs_.size(); ++i) put(*now[i], inputs_[i]);
  if (last_->reshaped) net_->reshape();
  last_.reset();
}

void endPlanned(const NetBox& box) {
  if (box.planned) box.planned->end();
}

}  // namespace crema::api
