#include "train/step.h"

#include <algorithm>

#include "base/clock.h"

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

}  // namespace

Step::Step(solver::Solver& solver, collective::Exchange* exchange, RankRange mine, int ranks)
    : solver_(solver),
      exchange_(exchange),
      ranks_(ranks),
      firstRank_(mine.lo),
      count_(mine.hi - mine.lo),
      mine_(planTree(wholeSubtrees(mine, ranks), [](RankRange r) { return r.hi - r.lo == 1; }),
            TreeSum::Leaves::kUntilNext) {
  if (solver_.net().flatData().dtype() != DType::kFloat32) internal("training runs in float; double is for checking");
  cutParts();
  if (exchange_) background_.emplace(*exchange_);
}

// Parts of at least 4 MiB: below, two rounds over the network cost more than is gained. A net of less than two such parts
// is summed at once.
void Step::cutParts() {
  constexpr int64_t kLeast = 1 << 20;  // floats
  const net::Net& net = solver_.net();
  std::vector<int64_t> starts;
  int64_t learnt = 0;
  for (const auto& l : net.learnables())
    if (!l.keptPerPass) starts.push_back(l.offset), learnt = std::max(learnt, l.offset + l.blob->count());
  std::sort(starts.rbegin(), starts.rend());
  const int64_t count = solver_.net().flatDiff().count();
  if (learnt < 2 * kLeast) return parts_.push_back({0, count});
  for (int64_t to = learnt; const int64_t from : starts)
    if (to - from >= kLeast || from == 0) parts_.push_back({from, to}), to = from;
  parts_.push_back({learnt, count});
}

void Step::addParts(int64_t complete, size_t before) {
  float* all = solver_.net().flatDiff().mutableDiff<float>();
  for (; added_ < before && parts_[added_].from >= complete; ++added_) {
    const auto [from, to] = parts_[added_];
    std::vector<const float*> pieces;
    for (const float* piece : pieces_) pieces.push_back(piece + from);
    background_->add({pieces, all + from, to - from, Tag::gradient(solver_.iteration(), static_cast<int>(added_))});
  }
}

Step::Sum Step::run(const std::function<double(int rank, const Done& done)>& pass,
                    const std::function<Request()>& request) {
  net::Net& net = solver_.net();
  const int64_t learnt = net.flatData().count(), count = net.flatDiff().count();
  Done done;
  added_ = 0;
  if (background_ && count_ == 1) {
    pieces_ = {net.flatDiff().diff<float>()};
    done = [this](int64_t from) { addParts(from, parts_.size() - 1); };
  }
  mine_.run(count, [&](int leaf) {
    const double loss = pass(firstRank_ + leaf, done);
    const Request asked = request ? request() : Request::kNone;
    float* gradient = net.flatDiff().mutableDiff<float>();
    Spare{loss, leaf + 1 == count_ ? asked : Request::kNone}.write(gradient + learnt);
    return gradient;
  });
  const float* total = mine_.root(0);
  if (background_) {
    pieces_.clear();
    for (size_t i = 0; i < mine_.roots(); ++i) pieces_.push_back(mine_.root(i));
    const double from = monotonicSeconds();
    const collective::WaitingScope waiting(*exchange_);
    addParts(0, parts_.size());
    background_->finish();
    exchanged_ += monotonicSeconds() - from;
    total = net.flatDiff().diff<float>();
  }
  const Spare sum = Spare::read(total + learnt, exchange_ ? exchange_->workers() : 1);
  return {total, sum.loss / ranks_, sum.requests};
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
