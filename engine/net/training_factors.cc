// Of a TrainingPlan: the factors of gradients that are left to the update. A gradient of an inner product's weights is a product
// of its bottom x and the gradient dy of its top; the sum over ranks is computed from the x and dy of all of them. What is sent
// for it are "sufficient factors" (Xie et al., "Lighter-communication distributed machine learning via sufficient factor
// broadcasting", 2016).
#include <algorithm>
#include <set>

#include "net/training_plan.h"

namespace crema::net {

bool TrainingPlan::updateDeferred(const Blob& weights, const kernels::Update& u, float* histories, int64_t stride) {
  const auto at = deferred_.find(&weights);
  if (!left_ || at == deferred_.end() || !isLeft(at->second)) return false;
  const int i = at->second;
  kernels::IpFactors<float> factors{net_.bottoms(i)[0]->data<float>(), net_.tops(i)[0]->diff<float>()};
  if (severalRanks_) {
    const auto& [of, values] = shared_.at(i);
    factors = {values.data(), values.data() + int64_t{of.shape.n} * of.shape.in, of.factors(), sum_};
  }
  net_.layers()[static_cast<size_t>(i)]->updateDeferred(factors, u, histories, stride);
  return true;
}

// Those with a row for each item of a batch, which are as many in each pass: other rows may be numbers of a picture, and some
// layers choose items by their values.
void TrainingPlan::findDeferrable() {
  static const std::set<std::string> kChoosing = {"Filter", "BatchReindex", "Python"};
  if (net_.layers().empty() || net_.tops(0).empty() || net_.tops(0)[0]->shape().axes() == 0) return;
  const int items = net_.tops(0)[0]->shape()[0];
  for (const auto& layer : net_.layers())
    if (kChoosing.count(layer->type())) return;
  for (const auto& l : net_.learnables())
    if (const auto at = deferred_.find(l.blob.get()); at != deferred_.end()) {
      const Shape& bottom = net_.bottoms(at->second)[0]->shape();
      const kernels::IpShape shape = net_.layers()[static_cast<size_t>(at->second)]->deferredShape();
      if (shape.n == items && bottom[0] == items)
        deferrable_.push_back({at->second, l.offset, l.offset + l.blob->count(), shape});
    }
}

void TrainingPlan::shareFactors(const std::vector<Deferrable>& layers, int ranks,
                                const std::vector<kernels::SumStep>& sum) {
  severalRanks_ = true;
  shared_.clear();
  sum_ = sum;
  for (const Deferrable& of : layers)
    shared_[of.layer] = {of, std::vector<float>(static_cast<size_t>(of.factors() * ranks))};
}

void TrainingPlan::takeFactors(int layer, int rank) {
  auto& [of, values] = shared_.at(layer);
  const auto& now = *net_.layers()[static_cast<size_t>(layer)];
  if (now.deferredShape().n != of.shape.n)
    invalid(
        "{} has {} rows in this pass, and {} when the net was set up. Batches of several ranks have one size: train "
        "with one rank, or set snapshot_diff: true",
        now.label(), now.deferredShape().n, of.shape.n);
  const Blob &x = *net_.bottoms(layer)[0], &dy = *net_.tops(layer)[0];
  float* to = values.data() + of.factors() * rank;
  std::copy_n(dy.diff<float>(), dy.count(), std::copy_n(x.data<float>(), x.count(), to));
}

}  // namespace crema::net
