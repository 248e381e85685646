#include "net/scoring_plan.h"

#include <algorithm>

#include "net/training_plan.h"

namespace crema::net {
namespace {

bool has(const layers::Blobs& blobs, const Blob* blob) {
  return std::find(blobs.begin(), blobs.end(), blob) != blobs.end();
}

}  // namespace

ScoringPlan::ScoringPlan(Net& net, const std::set<std::string>& kept, TrainingPlan* lender)
    : net_(net), memoryOf_(memoryOwners(net)), memory_(net.dtype()) {
  for (const auto& name : kept) kept_.insert(&net.blob(name));
  for (const auto& name : net.outputs()) kept_.insert(&net.blob(name));
  for (size_t i = 0; i < net.layers().size(); ++i) layers_.push_back({static_cast<int>(i), {}});
  if (!net.debugInfo())  // whose lines are about every layer
    for (int i = 0; i < static_cast<int>(layers_.size()); ++i) merge(i);
  placeBlobs(lender);
}

void ScoringPlan::merge(int convolution) {
  const auto& layer = *net_.layers()[static_cast<size_t>(convolution)];
  if (net_.tops(convolution).size() != 1 || !layer.takesSteps(net_.bottoms(convolution)) || layer.lossWeight(0) != 0)
    return;
  auto& steps = layers_[static_cast<size_t>(convolution)].steps;
  const Blob* made = net_.tops(convolution)[0];
  for (int last = convolution;;) {
    const int next = nextStep(convolution, last, made);
    if (next < 0) return;
    const auto& bottoms = net_.bottoms(next);
    steps.push_back({next, static_cast<int>(std::find(bottoms.begin(), bottoms.end(), made) - bottoms.begin())});
    layers_[static_cast<size_t>(next)].by = convolution;
    made = net_.tops(next)[0], last = next;
  }
}

// The layer behind `last` that is the next step on `made`; -1: there is none. A blob has one reader, as a Split stands
// before several.
int ScoringPlan::nextStep(int convolution, int last, const Blob* made) const {
  const int layers = static_cast<int>(layers_.size());
  int next = last + 1;
  while (next < layers && !has(net_.bottoms(next), made)) ++next;
  if (next == layers) return -1;
  const auto &bottoms = net_.bottoms(next), &tops = net_.tops(next);
  const auto& layer = *net_.layers()[static_cast<size_t>(next)];
  const auto at = static_cast<int>(std::find(bottoms.begin(), bottoms.end(), made) - bottoms.begin());
  if (tops.size() != 1 || layer.lossWeight(0) != 0 || !layer.isStep(bottoms, at)) return -1;
  const bool inPlace = tops[0] == made;
  if (!inPlace && (isKept(made) || has(bottoms, tops[0]))) return -1;
  for (const Blob* other : bottoms)
    for (int i = convolution; i < next && other != made; ++i)
      for (const Blob* t : net_.tops(i))                        // in place, perhaps on another view of the same memory
        if (memoryOf_.at(t) == memoryOf_.at(other)) return -1;  // not complete when the convolution is computed
  return next;
}

double ScoringPlan::forward() {
  double loss = 0;
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) loss += forwardLayer(i);
  return loss;
}

double ScoringPlan::forwardLayer(int i) {
  const Planned& planned = layers_[static_cast<size_t>(i)];
  if (planned.by != i) return 0;
  if (planned.steps.empty()) return net_.forwardLayer(i);
  layers::Layer& layer = *net_.layers()[static_cast<size_t>(i)];
  layer.shapeTops(net_.bottoms(i), net_.tops(i));
  kernels::Epilogue<float> steps;
  for (const Merged& m : planned.steps)
    net_.layers()[static_cast<size_t>(m.layer)]->addSteps(net_.bottoms(m.layer), net_.tops(m.layer), m.bottom, &steps);
  layer.forwardInto(net_.bottoms(i), steps, net_.tops(planned.steps.back().layer)[0]);
  return 0;
}

std::vector<ScoringPlan::Lifetime> ScoringPlan::lifetimes() const {
  std::vector<Lifetime> all;
  std::map<const Blob*, size_t> known;  // indexes in `all`, by owners of memory
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
    const auto& layer = *net_.layers()[static_cast<size_t>(i)];
    for (const Blob* b : net_.bottoms(i)) all[known.at(memoryOf_.at(b))].need.to = i;
    for (const Blob* t : net_.tops(i)) {
      Blob* owner = memoryOf_.at(t);
      const auto [at, isNew] = known.try_emplace(owner, all.size());
      const bool renewed = !net_.bottoms(i).empty() || layer.renewsTops();
      if (isNew) all.push_back({{owner, computedBy(i), i}, renewed && layer.type() != "Python"});
      all[at->second].need.to = i;
      if (isKept(t)) all[at->second].shared = false;
    }
  }
  for (const Planned& p : layers_)  // what is not written: blobs between a convolution and its last step
    for (size_t k = 0; k < p.steps.size(); ++k) {
      const int below = k ? p.steps[k - 1].layer : p.by;
      if (const Blob* b = net_.tops(below)[0]; b != net_.tops(p.steps.back().layer)[0])
        all[known.at(memoryOf_.at(b))].shared = false;
    }
  return all;
}

void ScoringPlan::placeBlobs(TrainingPlan* lender) {
  std::vector<Need> needs;
  for (const Lifetime& l : lifetimes())
    if (l.shared) needs.push_back(l.need);
  const Placement p = placed(std::move(needs));
  if (!p.worthIt()) return;
  if (!lender) memory_.reshape({static_cast<int>(p.whole)});
  const Blob& memory = lender ? lender->lend(p.whole) : memory_;
  for (size_t i = 0; i < p.needs.size(); ++i)
    p.needs[i].blob->placeDataIn(memory, p.places[i]), placed_.push_back(p.needs[i].blob);
}

void ScoringPlan::giveBack() {
  for (Blob* blob : placed_) blob->shareData(Blob(blob->shape(), blob->dtype()));
  placed_.clear();
}

}  // namespace crema::net
