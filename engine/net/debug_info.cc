// debug_info: mean absolute values of what every layer read and made, in Caffe's lines. A net prints them where its
// description says debug_info; a solver's train net in the iterations that display shows, for the first rank here, its
// test nets in every batch. Sums are taken in double. [Update] lines are in Caffe's source, but nothing calls them.
#include <cmath>

#include "base/log.h"
#include "net/net.h"

namespace crema::net {
namespace {

struct Norms {
  double sum = 0, squares = 0;  // of absolute values
};

Norms norms(const Blob& blob, bool diff) {
  return withType(blob.dtype(), [&]<class T>() {
    Norms n;
    const T* x = diff ? blob.diff<T>() : blob.data<T>();
    for (int i = 0; i < blob.count(); ++i) n.sum += std::fabs(double{x[i]}), n.squares += double{x[i]} * double{x[i]};
    return n;
  });
}

double meanOf(const Blob& blob, bool diff) { return norms(blob, diff).sum / blob.count(); }

// Running statistics with the values that Caffe would have now: kept * value + addends in the diff.
Norms moved(const Blob& blob, double kept) {
  return withType(blob.dtype(), [&]<class T>() {
    Norms n;
    const T *x = blob.data<T>(), *addend = blob.diff<T>();
    for (int i = 0; i < blob.count(); ++i) {
      const double v = kept * x[i] + addend[i];
      n.sum += std::fabs(v), n.squares += v * v;
    }
    return n;
  });
}

}  // namespace

// f^p after p passes of this iteration, each keeping f of the statistics; 1 where passes leave nothing in the diffs.
double Net::keptSoFar(double perPass) const {
  if (!statistics_.collecting()) return 1;
  return std::pow(perPass, run_.step % options_.data.stepsPerRank + 1);
}

void Net::logForward(int i) const {
  const Wire& w = wires_[static_cast<size_t>(i)];
  const layers::Layer& layer = *layers_[static_cast<size_t>(i)];
  for (size_t t = 0; t < w.tops.size(); ++t)
    LOG_INFO("    [Forward] Layer {}, top blob {} data: {:.6g}", layer.name(), w.topNames[t],
             meanOf(*w.tops[t], false));
  for (int p = 0; p < static_cast<int>(layer.params().size()); ++p) {
    const bool named = p < layer.param().param_size() && !layer.param().param(p).name().empty();
    LOG_INFO("    [Forward] Layer {}, param blob {} data: {:.6g}", layer.name(),
             named ? layer.param().param(p).name() : std::to_string(p), paramMean(layer, p));
  }
}

double Net::paramMean(const layers::Layer& layer, int p) const {
  const Blob& blob = *layer.params()[static_cast<size_t>(p)];
  const auto kept = layer.keptPerPass(p);
  return kept ? moved(blob, keptSoFar(*kept)).sum / blob.count() : meanOf(blob, false);
}

void Net::logBackward(int i) const {
  const Wire& w = wires_[static_cast<size_t>(i)];
  const layers::Layer& layer = *layers_[static_cast<size_t>(i)];
  for (size_t b = 0; b < w.bottoms.size(); ++b)
    if (w.propagateDown[b])
      LOG_INFO("    [Backward] Layer {}, bottom blob {} diff: {:.6g}", layer.name(), w.bottomNames[b],
               meanOf(*w.bottoms[b], true));
  for (int p = 0; p < static_cast<int>(layer.params().size()); ++p)
    if (layer.paramPropagates(p))
      LOG_INFO("    [Backward] Layer {}, param blob {} diff: {:.6g}", layer.name(), p,
               layer.keptPerPass(p) ? 0.0 : meanOf(*layer.params()[static_cast<size_t>(p)], true));
}

// Running statistics have no gradient.
void Net::logBackwardSums() const {
  Norms data, diff;
  for (const Learnable& p : learnables_) {
    const Norms d = p.keptPerPass ? moved(*p.blob, keptSoFar(*p.keptPerPass)) : norms(*p.blob, false);
    const Norms g = p.keptPerPass ? Norms{} : norms(*p.blob, true);
    data.sum += d.sum, data.squares += d.squares, diff.sum += g.sum, diff.squares += g.squares;
  }
  LOG_ERROR("    [Backward] All net params (data, diff): L1 norm = ({:.6g}, {:.6g}); L2 norm = ({:.6g}, {:.6g})",
            data.sum, diff.sum, std::sqrt(data.squares), std::sqrt(diff.squares));
}

}  // namespace crema::net
