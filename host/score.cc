#include "host/score.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <optional>
#include <set>

#include "base/deadline.h"
#include "base/error.h"
#include "base/log.h"
#include "host/job_io.h"
#include "host/pulse.h"
#include "host/stdin_reader.h"
#include "layers/record_layer.h"
#include "model/filter.h"
#include "model/upgrade.h"
#include "net/net.h"
#include "net/scoring_plan.h"
#include "solver/descriptions.h"

namespace crema::host {
namespace {

constexpr int kNoRows = -1;

// The axis of a blob that counts records: 0, or 1 behind time steps where the data layer transposes; kNoRows for none.
int rowAxis(const Blob& blob, const std::string& name, int batch, const caffe::LayerParameter& data) {
  const Shape& s = blob.shape();
  const auto& tops = data.cos_data_param().top();
  for (int t = 0; t < std::min(data.top_size(), tops.size()); ++t)
    if (data.top(t) == name) return tops[t].transpose() ? 1 : s.axes() > 0 && s[0] == batch ? 0 : kNoRows;
  const bool steps = std::any_of(tops.begin(), tops.end(), [](const auto& top) { return top.transpose(); });
  const bool first = s.axes() > 0 && s[0] == batch, second = steps && s.axes() > 1 && s[1] == batch;
  if (first && second && batch > 1)
    invalid("blob '{}' is {}: records and time steps cannot be told apart; change batch_size {} of layer '{}'", name,
            s.brief(), batch, data.name());
  return first ? 0 : second ? 1 : kNoRows;
}

// A blob's values per row; a blob without a row axis (accuracy, loss) is repeated on every row of its batch.
void fillColumn(const Blob& blob, const std::string& name, int axis, int rows, wire::Event::Column* column) {
  const int steps = axis == 1 ? blob.shape()[0] : 1, width = axis == kNoRows ? blob.count() : blob.count() / rows;
  column->set_name(name);
  column->set_width(width);
  const auto* data = blob.data<float>();
  const int64_t values = int64_t{rows} * width;
  if (values > INT_MAX / static_cast<int64_t>(sizeof(float)))
    invalid("blob '{}' has {} values in a batch of {} rows, more than one message holds; use a smaller batch_size",
            name, values, rows);
  column->mutable_value()->Reserve(static_cast<int>(values));
  const int inner = width / steps;
  for (int r = 0; r < rows; ++r)
    for (int t = 0; t < steps; ++t) {
      const float* from = data + (axis == kNoRows ? 0 : (t * rows + r) * inner);
      for (int i = 0; i < inner; ++i) column->add_value(from[i]);
    }
}

// Runs the TEST net of a job batch by batch, and counts batches.
class Scorer {
 public:
  Scorer(const wire::Job& job, const caffe::SolverParameter& solver, const worker::HostRows& rows,
         std::atomic<int64_t>& batches)
      : batches_(batches),
        description_(solver::scoringDescription(solver, "", job.net_origin())),
        kernels_(kernels::chooseIsa(job.isa()), job.threads()) {
    net::NetOptions o;
    o.kernels = &kernels_;
    o.seed = static_cast<uint64_t>(solver.random_seed());
    o.data.source = worker::sourceOf(rows.window, rows.testRecords, job.test_source());
    o.data.resize = job.resize();
    o.data.use = layers::PassUse::kScoring;
    o.data.last = job.last();
    net_ = std::make_unique<net::Net>(description_.param, description_.state, o, description_.origin);
    if (job.weights().empty()) invalid("no weights are given to score with; name a .caffemodel (-model)");
    named(job.weights(), job.weights_name(), [&] { net::copyTrainedFiles(*net_, job.weights()); });
    net::warnOfUntrained(*net_, job.weights_name().empty() ? job.weights() : job.weights_name());
    blobs_.assign(job.blobs().begin(), job.blobs().end());
    if (blobs_.empty()) blobs_ = net_->outputs();
    if (net_->recordLayers().empty())
      invalid("net '{}' has no data layer in phase TEST; rows are read from it", net_->name());
    data_ = net_->recordLayers().back();
    batch_ = data_->batchSize();
    for (const auto& name : blobs_)  // the axis is found with a full batch, as the size of a short one may be ambiguous
      axes_.push_back(rowAxis(net_->blob(name), name, batch_, data_->param()));
    plan_.emplace(*net_, std::set<std::string>(blobs_.begin(), blobs_.end()));
    if (job.first() % batch_) internal("a range starts at record {}, batches have {}", job.first(), batch_);
  }
  int batch() const { return batch_; }
  int64_t skipped() const { return data_->skippedRecords(); }

  // step: number of the batch in the whole source, so that random numbers do not depend on how records are split over
  // processes.
  int64_t run(int64_t step) {
    net_->setStep(step, 0);
    plan_->forward();
    ++batches_;
    const auto& ids = data_->ids();
    const int rows = static_cast<int>(ids.size());
    if (rows == 0) return 0;
    wire::Event event;
    event.mutable_rows()->mutable_id()->Assign(ids.begin(), ids.end());
    for (size_t i = 0; i < blobs_.size(); ++i)
      fillColumn(net_->blob(blobs_[i]), blobs_[i], axes_[i], rows, event.mutable_rows()->add_column());
    toHost(event);
    return rows;
  }
  int64_t records() const { return data_->records(); }

 private:
  std::atomic<int64_t>& batches_;
  solver::NetDescription description_;
  kernels::Context kernels_;
  kernels::FrozenWeights frozen_{kernels_};  // no pass is before they are loaded
  std::unique_ptr<net::Net> net_;
  std::optional<net::ScoringPlan> plan_;
  layers::RecordLayer* data_ = nullptr;
  int batch_ = 0;
  std::vector<std::string> blobs_;
  std::vector<int> axes_;
};

int64_t scoreRecords(const wire::Job& job, Scorer& scorer, const Interrupt& interrupt) {
  const int64_t last = job.last() < 0 ? scorer.records() : std::min(job.last(), scorer.records());
  int64_t done = 0;
  for (int64_t at = job.first(); at < last; at += scorer.batch()) {
    interrupt.check();
    done += scorer.run(at / scorer.batch());
  }
  return done;
}

int64_t scoreRows(Scorer& scorer, data::RowWindow& window, const Interrupt& interrupt) {
  int64_t done = 0;
  for (int64_t at = 0;; at += scorer.batch()) {
    interrupt.check();
    const int64_t have = window.waitFor(at + scorer.batch());
    if (have <= at) return done;
    done += scorer.run(at / scorer.batch());
    window.release(have);
  }
}

wire::Event scoreAll(const wire::Job& job, worker::HostRows& rows, const Interrupt& interrupt,
                     std::atomic<int64_t>& batches) {
  const double started = monotonicSeconds();
  caffe::SolverParameter solver;
  if (!solver.ParseFromString(job.solver()))
    badData("the job's solver cannot be read; host and executable are of different versions");
  Scorer scorer(job, solver, rows, batches);
  wire::Event done;
  done.mutable_done()->set_records(rows.window ? scoreRows(scorer, *rows.window, interrupt)
                                               : scoreRecords(job, scorer, interrupt));
  done.mutable_done()->set_skipped(scorer.skipped());
  done.mutable_done()->set_seconds(monotonicSeconds() - started);
  return done;
}

}  // namespace

int serveScores() {
  setLogLevel(LogLevel::kWarning);
  const wire::Job job = readJob(STDIN_FILENO);
  static Interrupt& interrupt = *new Interrupt;  // never freed: the stdin watcher may outlive this call
  static worker::HostRows& rows = *new worker::HostRows(job, true, toHost, &interrupt);  // nor this
  exitWhenStdinEnds(interrupt, &rows);
  reportingFailure(toHost, [&] {
    std::atomic<int64_t> batches{0};
    const HostPulse pulse(job, [&] { return batches + rows.activity.arrived; });
    toHost(scoreAll(job, rows, interrupt, batches));
  });
  exitBesideStdin();
}

}  // namespace crema::host
