// What LSTM and RNN share: T time steps of N streams, and the state passed from step to step.
//   sums a_t = W_x x_t + b + W_h (k_t h_{t-1}) [+ W_s x_static], k_t is cont: 0 where a sequence begins, 1 where it
//   goes on; the layer computes h_t from a_t. With G sums for each of H hidden values:
//   bottoms     x T x N x ..., cont T x N [, x_static N x ...] [, the states at the start, 1 x N x H or N x H each]
//   tops        T x N x H [, the states at the end, 1 x N x H]; the states with expose_hidden: as in Caffe no gradient
//               passes through them, it ends with the batch
//   options     recurrent_param: num_output (H), weight_filler, bias_filler, expose_hidden; debug_info prints nothing
//   parameters  in Caffe's order: W_x GH x I, b GH, [W_s GH x S,] W_h GH x H
//
// Without expose_hidden a batch starts with the state in which the batch before left its streams, zero in the first, as
// in Caffe. "Before" means the last pass with one rank, and the same rank's previous step with several: each rank
// computed by this object has its own state, so that the model does not depend on the number of workers. State is not
// carried
//   - where batches are sharded: in scoring, and in tests of a run with several ranks, each starts at zero, as results
//     would depend on who computes it (Caffe carries state over test batches and from one test to the next);
//   - over a snapshot, which as in Caffe has none: a resumed run is exact where sentences do not cross batches, and
//     warns otherwise. Storing it would need every rank's state in worker 0's file;
//   - to a batch with another N.
#pragma once
#include <map>

#include "layers/layer.h"

namespace crema::layers {

class Recurrent : public Layer {
 public:
  Recurrent(const caffe::LayerParameter& p, const LayerContext& c, int states, int sums);
  Arity arity() const override;
  const char* withoutGradient(int bottom) const override { return bottom == 1 ? "cont" : nullptr; }
  int64_t multiplyAdds(const Blobs&, const Blobs&) const override {
    const int64_t eachStep = params()[0]->count() + int64_t{params().back()->count()};
    return streams_ * (steps_ * eachStep + (hasStatic_ ? params()[2]->count() : 0));
  }
  // The step that produced it (i64, -1: none), then the states.
  size_t carriedBytes() const override;
  void saveCarried(int rank, char* to) const override;
  void restoreCarried(int rank, const char* from) override;
  bool allowsForceBackward(int bottom) const override { return bottom == 0 || (bottom == 2 && hasStatic_); }

 protected:
  void configure(const Blobs& bottom, const Blobs& top) override;
  void reshape(const Blobs& bottom, const Blobs& top) override;
  // State i of every step, T x N x H.
  virtual const Blob& stateOfSteps(size_t i, const Blobs& top) const = 0;

  // A forward pass calls takeState, inputSums, recurrentSums for each t in turn, keepState.
  void takeState(const Blobs& bottom);
  void keepState(const Blobs& top);
  template <class T>
  void inputSums(const Blobs& bottom);  // sums_ = W_x x + b, fixed_ = W_s x_static
  template <class T>
  void recurrentSums(int t, const T* before, const T* cont);  // sets entering_ at t, and recurrent_
  // For the backward pass, once sums_.diff holds the gradients of step t and of later ones.
  template <class T>
  void gradientOfBefore(int t, const T* cont, T* before);  // t > 0; before: the gradient of h_{t-1} through step t
  template <class T>
  void gradientOfInputs(const std::vector<bool>& down, const Blobs& bottom);

  int64_t row(int t) const { return int64_t{t} * streams_; }
  int64_t at(int t, int n = 0) const { return (row(t) + n) * hidden_; }
  int recurrentWeights() const { return hasStatic_ ? 3 : 2; }
  template <class T>
  const T* w(int i) const {
    return params()[static_cast<size_t>(i)]->template data<T>();
  }
  template <class T>
  T* dw(int i) {
    return params()[static_cast<size_t>(i)]->template mutableDiff<T>();
  }
  template <class T>
  const T* fixedOf(int n) const {
    return hasStatic_ ? fixed_.data<T>() + sumsEach_ * at(0, n) : nullptr;
  }

  bool hasStatic_ = false;
  int hidden_ = 0, steps_ = 0, streams_ = 0;
  Blob sums_;                // T x N x GH; diff: the sums' gradients. layers may overwrite the sums with gates
  Blob recurrent_;           // N x GH: W_h (k h) of one step
  std::vector<Blob> start_;  // 1 x N x H: the states before step 0

 private:
  struct Kept {
    int64_t step;  // the step that produced it
    std::vector<Blob> states;
  };
  std::vector<Blob> blankStates() const { return std::vector<Blob>(start_.size(), Blob(context().dtype)); }
  void checkAxes(const Blobs& bottom) const;
  void warnOfLostState(const Blob& cont);
  void copyEnd(const Blobs& top, size_t state, Blob& to) const;
  template <class T>
  void sumOverTime();

  const bool exposed_;
  const int sumsEach_;
  bool warned_ = false;
  int inputs_ = 0, fixedInputs_ = 0;
  Blob fixed_;                // N x GH; diff: summed over time
  Blob entering_;             // T x N x H: k h of the step before
  std::map<int, Kept> kept_;  // by rank
};

}  // namespace crema::layers
