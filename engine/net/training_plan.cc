#include "net/training_plan.h"

#include <algorithm>
#include <set>

#include "layers/norm_group.h"
#include "layers/pool_group.h"
#include "layers/sum_group.h"
#include "net/delivered.h"
#include "net/training_memory.h"

namespace crema::net {
namespace {

bool reads(const Net& net, int i, const Blob* blob) {
  return std::count(net.bottoms(i).begin(), net.bottoms(i).end(), blob) > 0;
}
// And does not only work in place on it.
bool makes(const Net& net, int i, const Blob* blob) {
  return std::count(net.tops(i).begin(), net.tops(i).end(), blob) > 0 && !reads(net, i, blob);
}
// The layer as a part of a group; nullptr where it is none of that kind.
template <class Part>
Part* as(const Net& net, int i) {
  return dynamic_cast<Part*>(net.layers()[static_cast<size_t>(i)].get());
}
// The slope of a ReLU in place that needs its output alone going back; nothing for other layers.
std::optional<float> slopeOfRelu(const Net& net, int i) {
  const auto* relu = as<layers::SumFollower>(net, i);
  layers::SumSteps steps;
  if (!relu || net.layers()[static_cast<size_t>(i)]->lossWeight(0) != 0 ||
      !relu->followSum(net.bottoms(i), net.tops(i), &steps) || !steps.rectified)
    return std::nullopt;
  return steps.slope;
}
// Whether it makes one top without a loss, of which a gradient comes back to its first bottom.
bool isPlain(const Net& net, int i) {
  return net.tops(i).size() == 1 && net.layers()[static_cast<size_t>(i)]->lossWeight(0) == 0 && net.needsBackward(i) &&
         net.propagateDown(i)[0];
}

}  // namespace

TrainingPlan::TrainingPlan(Net& net, Options options)
    : net_(net), options_(options), memory_(net.dtype()), lent_(net.dtype()) {
  const int count = static_cast<int>(net.layers().size());
  for (int i = 0; i < count; ++i) layers_.push_back({i});
  for (int i = 0; i < count; ++i)
    if (const auto* leader = as<layers::NormLeader>(net, i); leader && isPlain(net, i) && leader->leads(net.bottoms(i)))
      findGroup(i), findWriter(i);
    else if (const auto* sum = as<layers::SumLeader>(net, i);
             sum && isPlain(net, i) && sum->leadsSum(net.bottoms(i), net.tops(i)))
      findSumGroup(i);
  for (int i = 0; i < count; ++i) findRectified(i);
  for (int i = 0; i < count && !options.maySeparate && !net.debugInfo(); ++i) findStopped(i);
  if (options.mayDefer) findDeferred(), findDeferrable();
  placeBlobs();
  findSetters();
  orderLearnt();
}

bool TrainingPlan::separately() const {
  if (!net_.debugInfo() && !net_.isWatched()) return false;
  if (std::any_of(layers_.begin(), layers_.end(), [](const Planned& planned) { return planned.stoppedBy >= 0; }))
    internal("a plan that leaves out values was asked to go layer by layer");
  return true;
}

void TrainingPlan::placeBlobs() {
  std::vector<int> by;
  std::set<int> deferred, stopped;
  for (int i = 0; const Planned& planned : layers_) {
    by.push_back(planned.by);
    if (planned.stoppedBy >= 0) stopped.insert(i);
    ++i;
  }
  for (const auto& [weights, layer] : deferred_) deferred.insert(layer);
  std::vector<Need> needs = valueNeeds(net_, by, options_.which == GoingBack::All, deferred, stopped),
                    gradients = gradientNeeds(net_, by, deferred);
  needs.insert(needs.end(), gradients.begin(), gradients.end());
  placement_ = placed(std::move(needs));
  if (!placement_.worthIt()) placement_ = placed(std::move(gradients));  // values of more than 8 GB
  if (!placement_.worthIt()) return;
  memory_.reshape({static_cast<int>(placement_.whole)});
  memory_.joinDataWithDiff();
  for (size_t i = 0; i < placement_.needs.size(); ++i) {
    const Need& need = placement_.needs[i];
    need.ofGradient ? need.blob->placeDiffIn(memory_, placement_.places[i])
                    : need.blob->placeDataIn(memory_, placement_.places[i]);
  }
}

int TrainingPlan::next(int layer, const Blob* made) const {
  for (int i = layer + 1; i < static_cast<int>(layers_.size()); ++i)
    if (reads(net_, i, made)) return i;
  return -1;
}

void TrainingPlan::findGroup(int leader) {
  Planned& planned = layers_[static_cast<size_t>(leader)];
  const Blob* made = net_.tops(leader)[0];
  kernels::NormSteps<float> steps;
  for (int i = next(leader, made); i >= 0; i = next(i, made)) {
    const auto* follower = as<layers::NormFollower>(net_, i);
    if (!follower || !isPlain(net_, i) || net_.bottoms(i).size() != 1 || net_.tops(i)[0] != made ||
        !follower->follow(net_.bottoms(i), &steps))
      return;
    planned.behind.push_back(i);
    layers_[static_cast<size_t>(i)].by = leader;
  }
}

// A Split ends the group, as its tops are other blobs.
void TrainingPlan::findSumGroup(int leader) {
  Planned& planned = layers_[static_cast<size_t>(leader)];
  const Blob* made = net_.tops(leader)[0];
  layers::SumSteps steps;
  for (int i = next(leader, made); i >= 0; i = next(i, made)) {
    const auto* follower = as<layers::SumFollower>(net_, i);
    bool losses = false;
    for (size_t t = 0; t < net_.tops(i).size(); ++t)
      losses |= net_.layers()[static_cast<size_t>(i)]->lossWeight(static_cast<int>(t)) != 0;
    if (!follower || losses || !net_.needsBackward(i) || net_.bottoms(i).size() != 1 || !net_.propagateDown(i)[0] ||
        !follower->followSum(net_.bottoms(i), net_.tops(i), &steps))
      return;
    planned.behind.push_back(i);
    layers_[static_cast<size_t>(i)].by = leader;
    if (net_.tops(i)[0] != made) return;
  }
}

void TrainingPlan::findWriter(int leader) {
  const Blob* bottom = net_.bottoms(leader)[0];
  if (net_.tops(leader)[0] != bottom) return;
  for (int i = 0; i < leader; ++i) {
    const auto& layer = *net_.layers()[static_cast<size_t>(i)];
    if (!makes(net_, i, bottom)) continue;
    if (net_.tops(i).size() != 1 || layer.lossWeight(0) != 0 || !layer.takesSteps(net_.bottoms(i)) ||
        next(i, bottom) != leader)
      return;
    layers_[static_cast<size_t>(i)].writesFor = leader;
    layers_[static_cast<size_t>(leader)].kept = true;
    return;
  }
}

// A ReLU that may stand behind a sum may stand behind a convolution: it is in place, and going back it needs its output alone.
void TrainingPlan::findRectified(int convolution) {
  const auto& layer = *net_.layers()[static_cast<size_t>(convolution)];
  const auto &bottoms = net_.bottoms(convolution), &tops = net_.tops(convolution);
  if (tops.size() != 1 || layer.lossWeight(0) != 0 || !layer.takesSteps(bottoms)) return;
  const int behind = next(convolution, tops[0]);
  if (behind < 0 || !slopeOfRelu(net_, behind)) return;
  layers_[static_cast<size_t>(convolution)].rectifiedFor = behind;
  layers_[static_cast<size_t>(behind)].rectifiedBy = convolution;
}

// What it stops, the pooling has not sent. All others would read the ReLU's output behind a Split.
void TrainingPlan::findStopped(int relu) {
  if (slopeOfRelu(net_, relu) != 0.f || computedBy(relu) != relu || !isPlain(net_, relu)) return;
  const int behind = next(relu, net_.tops(relu)[0]);
  if (behind < 0 || !isPlain(net_, behind)) return;
  auto* pool = as<layers::PoolLeader>(net_, behind);
  if (!pool || !pool->leadsPool()) return;
  pool->stopGradients();
  layers_[static_cast<size_t>(relu)].stoppedBy = behind;
}

std::string TrainingPlan::firstNotFinite() {
  const Delivered delivered(net_);
  std::string where;
  for (int i = 0; i < static_cast<int>(layers_.size()) && where.empty(); ++i) {
    if (delivered.isChanged(i)) continue;
    if (!net_.bottoms(i).empty() && !delivered.changes(i)) net_.forwardLayer(i);
    where = net_.notFiniteIn(i);
  }
  return where;
}

Blob& TrainingPlan::lend(int64_t values) {
  if (values <= memory_.count()) return memory_;
  if (values > lent_.count()) lent_.reshape({static_cast<int>(values)});
  return lent_;
}

std::optional<kernels::NormSteps<float>> TrainingPlan::stepsOf(int leader) const {
  kernels::NormSteps<float> steps;
  for (const int i : layers_[static_cast<size_t>(leader)].behind)
    if (!as<layers::NormFollower>(net_, i)->follow(net_.bottoms(i), &steps)) internal("layer {} follows no longer", i);
  return steps;
}

float TrainingPlan::slopeBehindSum(int leader) const {
  layers::SumSteps steps;
  for (const int i : layers_[static_cast<size_t>(leader)].behind)
    if (!as<layers::SumFollower>(net_, i)->followSum(net_.bottoms(i), net_.tops(i), &steps))
      internal("layer {} follows no longer", i);
  return steps.slope;
}

double TrainingPlan::forward() {
  asPlanned_ = !separately();
  if (!asPlanned_) return net_.forward();
  double loss = 0;
  for (int i = 0; i < static_cast<int>(layers_.size()); ++i) loss += forwardLayer(i);
  return loss;
}

void TrainingPlan::backward(const std::function<void(int64_t from)>& done) {
  left_ = std::exchange(defers_, false) && asPlanned_;
  // Of all, as a pass that was dropped half-way has not come to some of them.
  for (const auto& [weights, i] : deferred_) net_.layers()[static_cast<size_t>(i)]->deferGradient(left_ && isLeft(i));
  if (!asPlanned_) return net_.backward();
  auto next = learnt_.begin();
  for (int i = static_cast<int>(layers_.size()); i-- > 0;) {
    if (net_.needsBackward(i)) backwardLayer(i);
    const auto before = next;
    while (next != learnt_.end() && next->lastLayer >= i) ++next;
    if (done && next != before) done(std::prev(next)->from);
  }
}

double TrainingPlan::forwardLayer(int i) {
  const Planned& planned = layers_[static_cast<size_t>(i)];
  layers::Layer& layer = *net_.layers()[static_cast<size_t>(i)];
  if (planned.by != i || planned.rectifiedBy >= 0) return 0;
  net_.checkInterrupt();
  if (planned.rectifiedFor >= 0) return forwardRectified(i), 0;
  if (planned.writesFor >= 0) {
    Blob& to = as<layers::NormLeader>(net_, planned.writesFor)->keptBottom();
    layer.shapeTops(net_.bottoms(i), net_.tops(i));
    to.reshape(net_.tops(i)[0]->shape());
    return layer.forwardInto(net_.bottoms(i), {}, &to), 0;
  }
  if (!planned.behind.empty() && as<layers::SumLeader>(net_, i)) return forwardSum(i), 0;
  layers::NormLeader* leader = planned.kept || !planned.behind.empty() ? as<layers::NormLeader>(net_, i) : nullptr;
  if (!leader) return net_.forwardLayer(i);
  layer.shapeTops(net_.bottoms(i), net_.tops(i));
  for (const int b : planned.behind) net_.layers()[static_cast<size_t>(b)]->shapeTops(net_.bottoms(b), net_.tops(b));
  if (net_.tops(i)[0]->count() == 0) return 0;
  inside([&] { return "in forward of " + layer.label(); },
         [&] { leader->forwardGroup(net_.bottoms(i), net_.tops(i), *stepsOf(i), planned.kept); });
  return 0;
}

void TrainingPlan::forwardRectified(int convolution) {
  layers::Layer& layer = *net_.layers()[static_cast<size_t>(convolution)];
  const int relu = layers_[static_cast<size_t>(convolution)].rectifiedFor;
  layer.shapeTops(net_.bottoms(convolution), net_.tops(convolution));
  kernels::Epilogue<float> steps;
  net_.layers()[static_cast<size_t>(relu)]->addSteps(net_.bottoms(relu), net_.tops(relu), 0, &steps);
  layer.forwardInto(net_.bottoms(convolution), steps, net_.tops(convolution)[0]);
}

void TrainingPlan::forwardSum(int leader) {
  layers::Layer& layer = *net_.layers()[static_cast<size_t>(leader)];
  const auto &bottoms = net_.bottoms(leader), &tops = net_.tops(leader);
  layer.shapeTops(bottoms, tops);
  for (const int b : layers_[static_cast<size_t>(leader)].behind)
    net_.layers()[static_cast<size_t>(b)]->shapeTops(net_.bottoms(b), net_.tops(b));
  if (tops[0]->count() == 0) return;
  inside([&] { return "in forward of " + layer.label(); },
         [&] { as<layers::SumLeader>(net_, leader)->forwardSum(bottoms, tops, slopeBehindSum(leader)); });
}

void TrainingPlan::backwardSum(int leader) {
  const auto &bottoms = net_.bottoms(leader), &tops = net_.tops(leader);
  if (tops[0]->count() == 0) return;
  const auto& ends = net_.tops(layers_[static_cast<size_t>(leader)].behind.back());  // the Split's, if there is one
  const float *dy0 = ends[0]->diff<float>(), *dy1 = ends.size() > 1 ? ends[1]->diff<float>() : nullptr;
  inside([&] { return "in backward of " + net_.layers()[static_cast<size_t>(leader)]->label(); },
         [&] {
           as<layers::SumLeader>(net_, leader)
               ->backwardSum(dy0, dy1, tops, net_.propagateDown(leader), bottoms, slopeBehindSum(leader));
         });
}

void TrainingPlan::backwardLayer(int i) {
  const Planned& planned = layers_[static_cast<size_t>(i)];
  if (planned.by != i || planned.stoppedBy >= 0) return;
  if (planned.behind.empty()) return net_.backwardLayer(i);
  if (as<layers::SumLeader>(net_, i)) return backwardSum(i);
  const layers::Layer& layer = *net_.layers()[static_cast<size_t>(i)];
  if (net_.tops(i)[0]->count() == 0) return;
  inside([&] { return "in backward of " + layer.label(); },
         [&] {
           const auto channels = static_cast<size_t>(net_.bottoms(i)[0]->shape()[1]);
           scale_.resize(channels), offset_.resize(channels);
           const kernels::NormSums sums = {scale_.data(), offset_.data()};
           as<layers::NormLeader>(net_, i)->backwardGroup(net_.tops(i), net_.bottoms(i), *stepsOf(i), sums);
           for (const int b : planned.behind) as<layers::NormFollower>(net_, b)->addSums(sums);
         });
}

}  // namespace crema::net
