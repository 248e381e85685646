#include "layers/layer.h"

#include <algorithm>

namespace crema::layers {

void Layer::setUp(const Blobs& bottom, const Blobs& top) {
  inside([&] { return "in " + label(); },
         [&] {
           checkCounts(bottom, top);
           configure(bottom, top);
           if (param_.blobs_size() > 0 && param_.blobs_size() != static_cast<int>(params_.size()))
             invalid("the description carries {} blobs of weights, the layer has {}", param_.blobs_size(),
                     params_.size());
           reshape(bottom, top);
           rememberShapes(bottom, top);
         });
  if (param_.loss_weight_size() == 0 && isLoss()) param_.add_loss_weight(1);  // saved models have it, as Caffe's do
  if (param_.loss_weight_size() && param_.loss_weight_size() != static_cast<int>(top.size()))
    invalid("loss_weight needs one entry per top: {} entries, {} tops\n  in {}", param_.loss_weight_size(), top.size(),
            label());
  for (int i = 0; i < param_.loss_weight_size(); ++i) setLossWeight(i, param_.loss_weight(i));
  paramPropagate_.resize(params_.size(), true);
  placeLossWeights(top);
}

namespace {

// Whether all blobs are empty: a loop over 2^31 items without values would still take time.
bool nothingToDo(const Blobs& bottom, const Blobs& top) {
  const auto empty = [](const Blob* b) { return b->count() == 0; };
  return !bottom.empty() && std::all_of(bottom.begin(), bottom.end(), empty) &&
         std::all_of(top.begin(), top.end(), empty);
}

}  // namespace

double Layer::forward(const Blobs& bottom, const Blobs& top) {
  return inside([&] { return "in forward of " + label(); },
                [&] {
                  reshape(bottom, top);
                  if (!nothingToDo(bottom, top)) compute(bottom, top);
                  rememberShapes(bottom, top);
                  double loss = 0;
                  placeLossWeights(top);
                  for (size_t i = 0; i < top.size(); ++i) {
                    if (lossWeight(static_cast<int>(i)) == 0) continue;
                    withType(context_.dtype, [&]<class T>() {
                      loss += kernels::dot<T>(kernels(), top[i]->count(), top[i]->data<T>(), top[i]->diff<T>());
                    });
                  }
                  return loss;
                });
}

void Layer::addSteps(const Blobs& bottom, const Blobs& top, int at, kernels::Epilogue<float>* steps) {
  inside([&] { return "in forward of " + label(); },
         [&] { reshape(bottom, top), rememberShapes(bottom, top), this->steps(bottom, at, steps); });
}

void Layer::forwardInto(const Blobs& bottom, const kernels::Epilogue<float>& steps, Blob* to) {
  inside([&] { return "in forward of " + label(); },
         [&] {
           if (to->count() > 0) computeInto(bottom, steps, to);
         });
}

void Layer::shapeTops(const Blobs& bottom, const Blobs& top) {
  inside([&] { return "in reshape of " + label(); }, [&] { reshape(bottom, top), rememberShapes(bottom, top); });
}

void Layer::rememberShapes(const Blobs& bottom, const Blobs& top) {
  shapes_.resize(bottom.size() + top.size());
  size_t i = 0;
  for (const Blobs* blobs : {&bottom, &top})
    for (const Blob* b : *blobs) shapes_[i++] = b->shape();
}

void Layer::checkShapes(const Blobs& bottom, const Blobs& top) const {
  for (size_t i = 0; i < shapes_.size(); ++i) {
    const bool below = i < bottom.size();
    const size_t at = below ? i : i - bottom.size();
    if (const Shape& now = (below ? bottom : top)[at]->shape(); !(now == shapes_[i]))
      invalid("{} {} is {} now and was {} in the last forward; go forward, or reshape the net, before going backward",
              below ? "bottom" : "top", at, now.brief(), shapes_[i].brief());
  }
}

void Layer::backward(const Blobs& top, const std::vector<bool>& propagateDown, const Blobs& bottom) {
  inside([&] { return "in backward of " + label(); },
         [&] {
           for (int i = 0; i < static_cast<int>(propagateDown.size()); ++i)
             if (const char* what = withoutGradient(i); what && propagateDown[static_cast<size_t>(i)])
               invalid("{} has no gradient for its {} (bottom {}); set propagate_down to false there", type(), what, i);
           checkShapes(bottom, top);
           if (!nothingToDo(bottom, top))
             gradient(top, propagateDown, bottom);
           else if (noGradients_)
             for (const auto& param : params_) param->fillDiff(0);
           noGradients_ = defers_ = false;
         });
}

// The weight of a loss is stored in its top's diff: the loss is dot(data, diff), and backward finds it as the incoming
// gradient.
void Layer::placeLossWeights(const Blobs& top) {
  for (size_t i = 0; i < lossWeights_.size() && i < top.size(); ++i)
    if (lossWeights_[i] != 0) top[i]->fillDiff(lossWeights_[i]);
}

double Layer::lossWeight(int top) const {
  return static_cast<size_t>(top) < lossWeights_.size() ? lossWeights_[static_cast<size_t>(top)] : 0.0;
}

void Layer::setLossWeight(int top, double weight) {
  if (lossWeights_.size() <= static_cast<size_t>(top)) lossWeights_.resize(static_cast<size_t>(top) + 1, 0.0);
  lossWeights_[static_cast<size_t>(top)] = weight;
}

void Layer::setParamPropagate(int i, bool on) {
  if (paramPropagate_.size() <= static_cast<size_t>(i)) paramPropagate_.resize(static_cast<size_t>(i) + 1, true);
  paramPropagate_[static_cast<size_t>(i)] = on;
}

bool Layer::paramPropagates(int i) const {
  return static_cast<size_t>(i) < paramPropagate_.size() ? paramPropagate_[static_cast<size_t>(i)] : true;
}

RandomStream Layer::random(RandomPurpose purpose) const {
  RandomKey key;
  key.seed = context_.run->seed;
  key.purpose = purpose;
  key.name = hashName(randomName());
  key.step = static_cast<uint64_t>(context_.run->draw < 0 ? context_.run->step : context_.run->draw);
  key.rank = static_cast<uint32_t>(context_.run->rank);
  return RandomStream(key);
}

void Layer::addParam(const Shape& shape, const caffe::FillerParameter& filler) {
  auto blob = std::make_shared<Blob>(shape, context_.dtype);
  const int index = static_cast<int>(params_.size());
  if (index < param_.blobs_size()) {
    if (!shapeMatches(param_.blobs(index), shape))
      invalid("blobs[{}] of the description has shape {}, the layer needs {}", index,
              shapeOf(param_.blobs(index)).brief(), shape.brief());
    fromProto(param_.blobs(index), *blob);
  } else if (!context_.fills || !context_.fillsParams) {
    checkFiller(filler, shape);
  } else {
    fill(filler, context_.run->seed, randomName() + "/" + std::to_string(index), *blob);
  }
  params_.push_back(std::move(blob));
}

void Layer::addStatistic(const Shape& shape, double kept) {
  kept_[static_cast<int>(params_.size())] = kept;
  addParam(shape, caffe::FillerParameter());
}

std::optional<double> Layer::keptPerPass(int param) const {
  const auto found = kept_.find(param);
  return found == kept_.end() ? std::nullopt : std::optional(found->second);
}

template <class T>
void Layer::addToStatistic(int param, const double* addends) {
  const StatisticsMode mode = context_.run->statistics;
  if (mode == StatisticsMode::kFixed) return;
  Blob& blob = *params_[static_cast<size_t>(param)];
  T* sums = mode == StatisticsMode::kMove ? blob.mutableData<T>() : blob.mutableDiff<T>();
  const double kept = kept_.at(param);
  for (int i = 0; i < blob.count(); ++i) sums[i] = static_cast<T>(kept * sums[i] + addends[i]);
}
template void Layer::addToStatistic<float>(int, const double*);
template void Layer::addToStatistic<double>(int, const double*);

void Layer::checkCounts(const Blobs& bottom, const Blobs& top) const {
  const Arity a = arity();
  const auto check = [&](const char* what, int have, int least, int most) {
    if (have >= least && (most < 0 || have <= most)) return;
    const std::string wanted = most < 0        ? fmt::format("at least {}", least)
                               : least == most ? fmt::format("{}", least)
                                               : fmt::format("{} to {}", least, most);
    invalid("{} takes {} {} blob(s), here are {}; correct the `{}` lines", type(), wanted, what, have, what);
  };
  check("bottom", static_cast<int>(bottom.size()), a.minBottoms, a.maxBottoms);
  check("top", static_cast<int>(top.size()), a.minTops, a.maxTops);
  if (a.sameCount && bottom.size() != top.size())
    invalid("{} makes one top per bottom, here are {} bottoms and {} tops", type(), bottom.size(), top.size());
}

}  // namespace crema::layers
