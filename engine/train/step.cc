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
  static Spare read(const float* sum) { return {double{sum[0]}, requestOf(sum + 1)}; }
};
static_assert(1 + kRequestBits <= net::Net::kSpare);

}  // namespace

Step::Step(solver::Solver& solver, collective::Exchange* exchange, RankRange mine, int ranks)
    : solver_(solver),
      exchange_(exchange),
      ranks_(ranks),
      firstRank_(mine.lo),
      mine_(planTree(wholeSubtrees(mine, ranks), [](RankRange r) { return r.hi - r.lo == 1; }),
            TreeSum::Leaves::kUntilNext) {
  if (solver_.net().flatData().dtype() != DType::kFloat32) internal("training runs in float; double is for checking");
}

Step::Sum Step::run(const std::function<double(int rank)>& pass, const std::function<Request()>& request) {
  net::Net& net = solver_.net();
  const int64_t learnt = net.flatData().count(), count = net.flatDiff().count();
  mine_.run(count, [&](int leaf) {
    const double loss = pass(firstRank_ + leaf);
    float* gradient = net.flatDiff().mutableDiff<float>();
    Spare{loss, request ? request() : Request::kNone}.write(gradient + learnt);
    return gradient;
  });
  const float* total = mine_.root(0);
  if (exchange_) {
    std::vector<const float*> pieces;
    for (size_t i = 0; i < mine_.roots(); ++i) pieces.push_back(mine_.root(i));
    float* all = net.flatDiff().mutableDiff<float>();
    const double from = monotonicSeconds();
    exchange_->allReduce(pieces, all, count, Tag::gradient(solver_.iteration()));
    exchanged_ += monotonicSeconds() - from;
    total = all;
  }
  const Spare sum = Spare::read(total + learnt);
  return {total, sum.loss / ranks_, sum.requests};
}

void Step::gather(std::vector<float>& values, const Tag& tag) {
  if (!exchange_) return;
  const std::vector<float> zeros(values.size(), 0.f), mine = values;
  std::vector<const float*> pieces(mine_.roots(), zeros.data());
  pieces[0] = mine.data();
  exchange_->allReduce(pieces, values.data(), static_cast<int64_t>(values.size()), tag);
}

}  // namespace crema::train
