// Of a TrainingPlan: which gradients of parameters are set, which are cleared and which are left to the update, and when each
// is complete.
#include <algorithm>
#include <map>
#include <set>

#include "net/training_plan.h"

namespace crema::net {

// The layer whose backward pass is the last that adds to a parameter's gradient: the first of those that share it.
void TrainingPlan::orderLearnt() {
  std::map<const void*, int> last;
  for (int i = static_cast<int>(layers_.size()); i-- > 0;)
    for (const auto& param : net_.layers()[static_cast<size_t>(i)]->params()) {
      const auto [at, isNew] = last.try_emplace(param->diffMemory().get(), computedBy(i));
      if (!isNew) at->second = std::min(at->second, computedBy(i));
    }
  for (const auto& l : net_.learnables())
    if (!l.keptPerPass) learnt_.push_back({l.offset, last.at(l.blob->diffMemory().get())});
  std::sort(learnt_.begin(), learnt_.end(), [](const Learnt& a, const Learnt& b) { return a.from > b.from; });
}

// Whether a parameter is learnt, and is no other layer's as well.
bool TrainingPlan::learnsAlone(int i, int param) const {
  const auto memory = [](const std::shared_ptr<Blob>& p) { return p->diffMemory().get(); };
  const layers::Layer& layer = *net_.layers()[static_cast<size_t>(i)];
  int readers = 0;
  for (const auto& each : net_.layers())
    for (const auto& p : each->params()) readers += memory(p) == memory(layer.params()[static_cast<size_t>(param)]);
  return net_.needsBackward(i) && layer.paramPropagates(param) && readers == 1;
}

void TrainingPlan::findDeferred() {
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
    const layers::Layer& layer = *net_.layers()[static_cast<size_t>(i)];
    if (layer.canDefer() && computedBy(i) == i && learnsAlone(i, 0)) deferred_.emplace(layer.params()[0].get(), i);
  }
}

// Layers that share no parameter with others and learn all of theirs.
void TrainingPlan::findSetters() {
  std::set<const Blob*> set;
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) {
    layers::Layer& layer = *net_.layers()[static_cast<size_t>(i)];
    bool sets = layer.setsGradients() && net_.needsBackward(i) && !layer.params().empty();
    for (size_t p = 0; p < layer.params().size(); ++p) sets = sets && learnsAlone(i, static_cast<int>(p));
    if (!sets) continue;
    setters_.push_back(&layer);
    for (const auto& param : layer.params()) set.insert(param.get());
  }
  int64_t from = 0;
  std::vector<const Net::Learnable*> all;
  for (const auto& l : net_.learnables()) all.push_back(&l);
  std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
  for (const auto* l : all)
    if (set.count(l->blob.get())) toClear_.emplace_back(from, l->offset), from = l->offset + l->blob->count();
  toClear_.emplace_back(from, net_.flatDiff().count());
}

void TrainingPlan::clearParamDiffs() {
  withType(net_.dtype(), [&]<class T>() {
    T* diffs = net_.flatDiff().mutableDiff<T>();
    for (const auto& [from, to] : toClear_) std::fill(diffs + from, diffs + to, T(0));
  });
  for (auto* layer : setters_) layer->expectNoGradients();
}

}  // namespace crema::net
