#include "train/step.h"

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "train/left_gradients.h"

namespace crema::train {
namespace {

using collective::RankRange;
using collective::Tag;
using collective::TreeSum;

// The layout of the spare floats behind the gradient in the net's flat diff, which are summed with it.
struct Spare {
  double loss;
  Request requests;

  void write(float* to) const {
    std::fill_n(to, net::Net::kSpare, 0.f);
    to[0] = static_cast<float>(loss);
    writeRequest(requests, to + 1);
  }
  static Spare read(const float* sum, int workers) { return {double{sum[0]}, requestOf(sum + 1, workers)}; }
};
static_assert(1 + kRequestBits <= net::Net::kSpare);

bool isRank(RankRange r) { return r.hi - r.lo == 1; }

}  // namespace

Step::Step(solver::Solver& solver, collective::Exchange* exchange, RankRange mine, int ranks)
    : solver_(solver),
      exchange_(exchange),
      ranks_(ranks),
      firstRank_(mine.lo),
      count_(mine.hi - mine.lo),
      gradient_(solver.net(), {}),
      mine_(planTree(wholeSubtrees(mine, ranks), isRank)) {
  if (solver_.net().flatData().dtype() != DType::kFloat32) internal("training runs in float; double is for checking");
  if (ranks_ > 1 && solver_.mayDefer()) solver_.plan()->shareFactors({}, ranks_, {});
  cutParts();
  if (exchange_) background_.emplace(*exchange_);
}

void Step::leaveGradients(int threads) {
  if (ranks_ == 1 || !solver_.mayDefer()) return;
  net::TrainingPlan& plan = *solver_.plan();
  left_ = worthLeaving(plan.deferrable(), ranks_, exchange_ ? exchange_->workers() : 1, threads);
  std::vector<kernels::SumStep> sum;
  for (const auto& i : planTree({{0, ranks_}}, isRank).instructions)
    sum.push_back({i.slot, i.action == collective::TreePlan::Action::kLoad ? i.leaf : -1});
  plan.shareFactors(left_, ranks_, sum);
  gradient_ = PackedGradient(solver_.net(), left_);
  cutParts();
}

// Sums of at least 4 MiB: below, two rounds over the network cost more than is gained. A net of less than two such parts
// is summed at once.
void Step::cutParts() {
  constexpr int64_t kLeast = 1 << 20;  // floats
  parts_.clear();
  std::set<int64_t> without;
  for (const auto& one : left_) without.insert(one.from), parts_.push_back({one.from, 0, 0, one.layer});
  std::vector<int64_t> starts;
  int64_t learnt = 0;
  for (const auto& l : solver_.net().learnables())
    if (!l.keptPerPass && !without.count(l.offset))
      starts.push_back(l.offset), learnt = std::max(learnt, gradient_.at(l.offset) + l.blob->count());
  std::sort(starts.begin(), starts.end());
  if (learnt < 2 * kLeast) starts.clear(), learnt = 0;
  int64_t to = learnt;
  for (; !starts.empty(); starts.pop_back()) {
    // The last one takes what is between it and the beginning: the rest of a gradient that is left out is there.
    const int64_t from = starts.size() == 1 ? 0 : gradient_.at(starts.back());
    if (to - from >= kLeast || from == 0) parts_.push_back({starts.back(), from, to}), to = from;
  }
  std::sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.complete > b.complete; });
  parts_.push_back({0, learnt, gradient_.count()});
}

void Step::take(int leaf, int64_t from, int64_t to) {
  gradient_.take(from, to);
  if (leaf + 1 == count_) mine_.addLast(from, to);
}

void Step::takeFactors(int leaf) {
  if (passes_ == Passes::kForward) return;
  for (const auto& one : left_) solver_.plan()->takeFactors(one.layer, firstRank_ + leaf);
}

void Step::addParts(int64_t complete, size_t before) {
  float* all = gradient_.values();
  for (; added_ < before && parts_[added_].complete >= complete; ++added_) {
    const auto [_, from, to, layer] = parts_[added_];
    const Tag tag = Tag::gradient(solver_.iteration(), static_cast<int>(added_));
    if (layer >= 0) {
      if (passes_ == Passes::kBothWays) shareFactors(layer, tag);
      continue;
    }
    take(count_ - 1, from, to);
    std::vector<const float*> pieces;
    for (size_t i = 0; i < mine_.roots(); ++i) pieces.push_back(mine_.root(i) + from);
    background_->add({pieces, all + from, to - from, tag});
  }
}

void Step::shareFactors(int layer, const Tag& tag) {
  solver_.plan()->takeFactors(layer, firstRank_ + count_ - 1);
  std::vector<float>& factors = solver_.plan()->factors(layer);
  const size_t each = factors.size() / static_cast<size_t>(ranks_) * sizeof(float);
  char* const bytes = reinterpret_cast<char*>(factors.data());
  std::vector<collective::Bytes> of;
  for (const RankRange share : exchange_->shares())
    of.push_back({bytes + each * static_cast<size_t>(share.lo), each * static_cast<size_t>(share.hi - share.lo)});
  background_->share({of, tag});
}

Step::Sum Step::run(const std::function<double(int rank, const Done& done)>& pass,
                    const std::function<Request()>& request, Passes passes) {
  net::Net& net = solver_.net();
  const int64_t learnt = net.flatData().count();
  const int last = count_ - 1;
  added_ = 0, passes_ = passes;
  const auto passOf = [&](int leaf, const Done& done) {
    const double loss = pass(firstRank_ + leaf, done);
    const Request asked = request ? request() : Request::kNone;
    Spare{loss, leaf == last ? asked : Request::kNone}.write(net.flatDiff().mutableDiff<float>() + learnt);
  };
  const auto whole = [&](int leaf) {
    take(leaf, 0, gradient_.count());
    takeFactors(leaf);
    return gradient_.values();
  };
  const auto load = [&](int leaf) { return passOf(leaf, nullptr), whole(leaf); };
  mine_.runBeforeLast(gradient_.count(), load, gradient_.values());
  if (background_) {
    passOf(last, [this](int64_t from) { addParts(from, parts_.size() - 1); });
    finishSums();
  } else {
    passOf(last, nullptr);
    whole(last);
  }
  const float* total = background_ ? gradient_.values() : mine_.root(0);
  total = gradient_.put(total);
  const Spare sum = Spare::read(total + learnt, exchange_ ? exchange_->workers() : 1);
  return {total, sum.loss / ranks_, sum.requests};
}

void Step::finishSums() {
  const double from = monotonicSeconds(), before = exchange_->waitedForOthers();
  const collective::WaitingScope waiting(*exchange_);
  addParts(0, parts_.size());
  background_->finish();
  const double others = exchange_->waitedForOthers() - before;
  exchanged_ += monotonicSeconds() - from - others, waitedForOthers_ += others;
}

void Step::gather(std::vector<float>& values, const Tag& tag) {
  if (!exchange_) return;
  const std::vector<float> zeros(values.size(), 0.f), mine = values;
  std::vector<const float*> pieces(mine_.roots(), zeros.data());
  pieces[0] = mine.data();
  const collective::WaitingScope waiting(*exchange_);
  exchange_->allReduce(pieces, values.data(), static_cast<int64_t>(values.size()), tag);
}

}  // namespace crema::train
