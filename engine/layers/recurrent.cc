#include "layers/recurrent.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"

namespace crema::layers {

Recurrent::Recurrent(const caffe::LayerParameter& p, const LayerContext& c, int states, int sums)
    : Layer(p, c),
      sums_(c.dtype),
      recurrent_(c.dtype),
      start_(static_cast<size_t>(states), Blob(c.dtype)),
      exposed_(p.recurrent_param().expose_hidden()),
      sumsEach_(sums),
      fixed_(c.dtype),
      entering_(c.dtype) {}

Layer::Arity Recurrent::arity() const {
  const auto states = static_cast<int>(start_.size());
  return exposed_ ? Arity{2 + states, 3 + states, 1 + states, 1 + states} : Arity{2, 3, 1, 1};
}

void Recurrent::configure(const Blobs& bottom, const Blobs&) {
  const auto& p = param_.recurrent_param();
  if (p.num_output() == 0 || p.num_output() > INT32_MAX / 4)
    invalid("num_output must be given, positive and below 2^29, not {}", p.num_output());
  hidden_ = static_cast<int>(p.num_output());
  hasStatic_ = bottom.size() == 3 + (exposed_ ? start_.size() : 0);
  checkAxes(bottom);
  const int rows = sumsEach_ * hidden_;
  inputs_ = bottom[0]->shape().count(2);
  addParam(Shape{rows, inputs_}, p.weight_filler());
  addParam(Shape{rows}, p.bias_filler());
  if (hasStatic_) {
    fixedInputs_ = bottom[2]->shape().count(1);
    addParam(Shape{rows, fixedInputs_}, p.weight_filler());
  }
  addParam(Shape{rows, hidden_}, p.weight_filler());
}

void Recurrent::reshape(const Blobs& bottom, const Blobs& top) {
  checkAxes(bottom);
  const Shape& x = bottom[0]->shape();
  if (x.count(2) != inputs_)
    invalid("the bottom is {}: {} inputs a step, the weights were made for {}", x.brief(), x.count(2), inputs_);
  if (hasStatic_ && bottom[2]->shape().count(1) != fixedInputs_)
    invalid("the static bottom is {}: {} inputs, the weights were made for {}", bottom[2]->shape().brief(),
            bottom[2]->shape().count(1), fixedInputs_);
  steps_ = x[0], streams_ = x[1];
  const Shape state{1, streams_, hidden_};
  for (size_t i = bottom.size() - (exposed_ ? start_.size() : 0); i < bottom.size(); ++i)
    if (!(bottom[i]->shape() == state || bottom[i]->shape() == Shape{streams_, hidden_}))
      invalid("bottom {} is a state of {} streams and must be {}, not {}", i, streams_, state.brief(),
              bottom[i]->shape().brief());
  top[0]->reshape(Shape{steps_, streams_, hidden_});
  for (size_t i = 1; i < top.size(); ++i) top[i]->reshape(state);
  sums_.reshape(Shape{steps_, streams_, sumsEach_ * hidden_});
  entering_.reshape(top[0]->shape());
  recurrent_.reshape(Shape{streams_, sumsEach_ * hidden_});
  if (hasStatic_) fixed_.reshape(recurrent_.shape());
  for (Blob& s : start_) s.reshape(state);
}

void Recurrent::checkAxes(const Blobs& bottom) const {
  const Shape &x = bottom[0]->shape(), &cont = bottom[1]->shape();
  if (x.axes() < 3) invalid("bottom 0 must be steps x streams x inputs, it is {}", x.brief());
  if (cont.axes() != 2 || cont[0] != x[0] || cont[1] != x[1])
    invalid("bottom 1 (cont) must be {}x{} like the first axes of bottom 0, it is {}", x[0], x[1], cont.brief());
  if (hasStatic_ && (bottom[2]->shape().axes() < 2 || bottom[2]->shape()[0] != x[1]))
    invalid("bottom 2 (static) must be {} streams x inputs, it is {}", x[1], bottom[2]->shape().brief());
}

void Recurrent::takeState(const Blobs& bottom) {
  const size_t states = start_.size();
  if (exposed_) {
    for (size_t i = 0; i < states; ++i) start_[i].copyDataFrom(*bottom[bottom.size() - states + i]);
    return;
  }
  const auto found = kept_.find(context().run->rank);
  const int64_t step = context().run->step;
  if (found != kept_.end() && found->second.states[0].shape() == start_[0].shape() &&
      (context().data->ranks == 1 || found->second.step == step || found->second.step + 1 == step)) {
    for (size_t i = 0; i < states; ++i) start_[i].copyDataFrom(found->second.states[i]);
    return;
  }
  for (Blob& s : start_) s.fillData(0);
  if (training() && !context().data->tests() && step != 0 && !warned_) warnOfLostState(*bottom[1]);
}

void Recurrent::warnOfLostState(const Blob& cont) {
  for (int n = 0; n < streams_; ++n) warned_ = warned_ || cont.dataAt(n) != 0;
  if (warned_)
    LOG_WARNING(
        "{}: batch {} goes on with sentences of the batch before, which is not known here; it starts from zero, as "
        "in Caffe. A run resumes exactly when every batch begins with cont 0",
        label(), context().run->step);
}

void Recurrent::keepState(const Blobs& top) {
  if (exposed_) {
    for (size_t i = 0; i < start_.size(); ++i) copyEnd(top, i, *top[i + 1]);
    return;
  }
  if (const PassUse use = context().data->use; use == PassUse::kScoring || use == PassUse::kSharedTest) return;
  Kept& kept = kept_.try_emplace(context().run->rank, Kept{0, blankStates()}).first->second;
  kept.step = context().run->step;
  for (size_t i = 0; i < start_.size(); ++i) {
    kept.states[i].reshape(start_[i].shape());
    copyEnd(top, i, kept.states[i]);
  }
}

size_t Recurrent::carriedBytes() const {
  if (exposed_) return 0;
  return sizeof(int64_t) + start_.size() * static_cast<size_t>(start_[0].count()) * sizeOf(context().dtype);
}

void Recurrent::saveCarried(int rank, char* to) const {
  const auto found = kept_.find(rank);
  const bool there = found != kept_.end() && found->second.states[0].shape() == start_[0].shape();
  const int64_t step = there ? found->second.step : -1;
  std::memcpy(to, &step, sizeof step);
  to += sizeof step;
  if (!there) return;
  withType(context().dtype, [&]<class T>() {
    for (const Blob& s : found->second.states) {
      const size_t bytes = static_cast<size_t>(s.count()) * sizeof(T);
      std::memcpy(to, s.data<T>(), bytes);
      to += bytes;
    }
  });
}

void Recurrent::restoreCarried(int rank, const char* from) {
  int64_t step = 0;
  std::memcpy(&step, from, sizeof step);
  from += sizeof step;
  kept_.erase(rank);
  if (step < 0) return;
  Kept& kept = kept_.try_emplace(rank, Kept{step, blankStates()}).first->second;
  withType(context().dtype, [&]<class T>() {
    for (Blob& s : kept.states) {
      s.reshape(start_[0].shape());
      const size_t bytes = static_cast<size_t>(s.count()) * sizeof(T);
      std::memcpy(s.mutableData<T>(), from, bytes);
      from += bytes;
    }
  });
}

void Recurrent::copyEnd(const Blobs& top, size_t state, Blob& to) const {
  if (steps_ == 0) return to.copyDataFrom(start_[state]);
  withType(context().dtype, [&]<class T>() {
    std::copy_n(stateOfSteps(state, top).data<T>() + at(steps_ - 1), at(1), to.mutableData<T>());
  });
}

template <class T>
void Recurrent::inputSums(const Blobs& bottom) {
  const int rows = sumsEach_ * hidden_;
  kernels::ipForward<T>(kernels(), {steps_ * streams_, inputs_, rows}, bottom[0]->data<T>(), w<T>(0), w<T>(1),
                        sums_.mutableData<T>());
  if (hasStatic_)
    kernels::ipForward<T>(kernels(), {streams_, fixedInputs_, rows}, bottom[2]->data<T>(), w<T>(2), nullptr,
                          fixed_.mutableData<T>());
}

template <class T>
void Recurrent::recurrentSums(int t, const T* before, const T* cont) {
  T* entering = entering_.mutableData<T>() + at(t);
  for (int64_t k = 0; k < at(1); ++k) entering[k] = cont[k / hidden_] * before[k];
  kernels::ipForward<T>(kernels(), {streams_, hidden_, sumsEach_ * hidden_}, entering, w<T>(recurrentWeights()),
                        nullptr, recurrent_.mutableData<T>());
}

template <class T>
void Recurrent::gradientOfBefore(int t, const T* cont, T* before) {
  kernels::ipBackwardData<T>(kernels(), {streams_, hidden_, sumsEach_ * hidden_}, sums_.diff<T>() + sumsEach_ * at(t),
                             w<T>(recurrentWeights()), before);
  for (int64_t i = 0; i < at(1); ++i) before[i] *= cont[i / hidden_];
}

template <class T>
void Recurrent::gradientOfInputs(const std::vector<bool>& down, const Blobs& bottom) {
  if (hasStatic_) sumOverTime<T>();
  const int rows = sumsEach_ * hidden_, last = recurrentWeights();
  const kernels::IpShape in{steps_ * streams_, inputs_, rows};
  const kernels::IpShape fixed{streams_, fixedInputs_, rows}, back{in.n, hidden_, rows};
  const T* da = sums_.diff<T>();
  if (paramPropagates(0)) kernels::ipBackwardWeights<T>(kernels(), in, bottom[0]->data<T>(), da, dw<T>(0), true);
  if (paramPropagates(1)) kernels::ipBackwardBias<T>(kernels(), in, da, dw<T>(1), true);
  if (hasStatic_ && paramPropagates(2))
    kernels::ipBackwardWeights<T>(kernels(), fixed, bottom[2]->data<T>(), fixed_.diff<T>(), dw<T>(2), true);
  if (paramPropagates(last)) kernels::ipBackwardWeights<T>(kernels(), back, entering_.data<T>(), da, dw<T>(last), true);
  if (down[0]) kernels::ipBackwardData<T>(kernels(), in, da, w<T>(0), bottom[0]->mutableDiff<T>());
  if (hasStatic_ && down[2])
    kernels::ipBackwardData<T>(kernels(), fixed, fixed_.diff<T>(), w<T>(2), bottom[2]->mutableDiff<T>());
  for (size_t i = hasStatic_ ? 3 : 2; i < bottom.size(); ++i)
    if (down[i]) bottom[i]->fillDiff(0);
}

template <class T>
void Recurrent::sumOverTime() {
  fixed_.fillDiff(0);
  for (int t = 0; t < steps_; ++t)
    kernels::add<T>(kernels(), sumsEach_ * at(1), fixed_.diff<T>(), sums_.diff<T>() + sumsEach_ * at(t),
                    fixed_.mutableDiff<T>());
}

#define INSTANCE(T)                                                   \
  template void Recurrent::inputSums<T>(const Blobs&);                \
  template void Recurrent::recurrentSums<T>(int, const T*, const T*); \
  template void Recurrent::gradientOfBefore<T>(int, const T*, T*);    \
  template void Recurrent::gradientOfInputs<T>(const std::vector<bool>&, const Blobs&);
INSTANCE(float)
INSTANCE(double)
#undef INSTANCE

}  // namespace crema::layers
