// crema score: rows in, rows out, no other process involved. Every record of [first, last) exactly once, in order, the
// last batch short.
#include <unistd.h>

#include <cstdio>

#include "base/deadline.h"
#include "base/error.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "cli/job_io.h"
#include "data/source.h"
#include "model/filter.h"
#include "model/upgrade.h"
#include "net/net.h"
#include "solver/descriptions.h"

namespace crema::cli {
namespace {

NetDescription testNetOf(const caffe::SolverParameter& solver, const std::string& origin) {
  const auto tests = testDescriptions(solver, "", origin);
  if (!tests.empty()) return tests[0];
  NetDescription d = trainDescription(solver, "", origin);
  d.state.set_phase(caffe::TEST);
  return d;
}

caffe::LayerParameter dataLayer(const caffe::NetParameter& net) {
  for (const auto& layer : net.layer())
    if (layer.type() == "Data" || layer.type() == "MemoryData" || layer.type() == "CoSData") return layer;
  invalid("net '{}' has no data layer in phase TEST; rows are read from it", net.name());
}

// A blob's values per row; a blob without a row axis (accuracy, loss) is repeated on every row of its batch.
void fillColumn(const Blob& blob, const std::string& name, bool perRow, int rows, wire::Event::Column* column) {
  const int width = perRow ? blob.count() / rows : blob.count();
  column->set_name(name);
  column->set_width(width);
  const auto* data = blob.data<float>();
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < width; ++i) column->add_value(data[perRow ? r * width + i : i]);
}

wire::Event rowsOf(const Net& net, const std::vector<std::string>& blobs, const std::vector<bool>& perRow,
                   const RecordSource& source, int64_t first, int rows) {
  wire::Event event;
  for (int r = 0; r < rows; ++r) event.mutable_rows()->add_id(std::string(source.read(first + r).key));
  for (size_t i = 0; i < blobs.size(); ++i)
    fillColumn(net.blob(blobs[i]), blobs[i], perRow[i], rows, event.mutable_rows()->add_column());
  return event;
}

std::shared_ptr<const RecordSource> sourceOf(const wire::Job& job, const caffe::LayerParameter& layer) {
  const std::string written =
      layer.memory_data_param().source() + layer.data_param().source() + layer.cos_data_param().source();
  return openSource(caffe::DataParameter::LMDB, job.test_source().empty() ? written : job.test_source());
}

int64_t scoreAll(const wire::Job& job, Interrupt& interrupt) {
  caffe::SolverParameter solver;
  if (!solver.ParseFromString(job.solver()))
    badData("the job's solver cannot be read; host and executable are of different versions");
  const NetDescription d = testNetOf(solver, job.net_origin());
  kernels::Context kernels(kernels::chooseIsa(job.isa()), job.threads() > 0 ? job.threads() : availableCores());
  NetOptions o;
  o.kernels = &kernels;
  o.seed = static_cast<uint64_t>(solver.random_seed());
  o.data.source = job.test_source();
  o.data.scoring = true;
  o.data.last = job.last();
  Net net(d.param, d.state, o, d.origin);
  if (job.weights().empty()) invalid("no weights are given to score with; name a .caffemodel (-model)");
  copyTrainedFiles(net, job.weights());
  std::vector<std::string> blobs(job.blobs().begin(), job.blobs().end());
  if (blobs.empty()) blobs = net.outputs();
  for (const auto& name : blobs) net.blob(name);
  const auto source = sourceOf(job, dataLayer(filterNet(d.param, d.state)));
  const int64_t last = job.last() < 0 ? source->size() : std::min(job.last(), source->size());
  const int batch = net.tops(0)[0]->shape()[0];
  if (job.first() % batch) internal("a range starts at record {}, batches have {}", job.first(), batch);
  std::vector<bool> perRow;  // decided on a full batch: a short one could look like something else
  for (const auto& name : blobs)
    perRow.push_back(net.blob(name).shape().axes() > 0 && net.blob(name).shape()[0] == batch);
  int64_t done = 0;
  for (int64_t at = job.first(); at < last; at += batch) {
    interrupt.check();
    net.setStep(at / batch, 0);  // of the whole source: random numbers do not depend on how it was cut
    net.forward();
    const int rows = static_cast<int>(std::min<int64_t>(batch, last - at));
    writeDelimited(STDOUT_FILENO, rowsOf(net, blobs, perRow, *source, at, rows));
    done += rows;
  }
  return done;
}

int score() {
  setLogLevel(LogLevel::kWarning);
  const wire::Job job = readJob(STDIN_FILENO);
  static Interrupt& interrupt = *new Interrupt;  // never freed: the stdin watcher may outlive this call
  exitWhenStdinEnds(interrupt);
  wire::Event last;
  try {
    const double started = monotonicSeconds();
    last.mutable_done()->set_records(scoreAll(job, interrupt));
    last.mutable_done()->set_seconds(monotonicSeconds() - started);
    writeDelimited(STDOUT_FILENO, last);
  } catch (const Error& e) {
    last.mutable_failed()->set_story(e.what());
    last.mutable_failed()->set_kind(name(e.kind()));
    writeDelimited(STDOUT_FILENO, last);
    throw;
  }
  ::_exit(0);
}

}  // namespace

void addScore(CLI::App& program, Run& chosen) {
  addCommand(
      program, "score", "rows of blobs for a range of records; started by a host program",
      [](CLI::App& app) -> Run {
        auto job = std::make_shared<std::string>("-");
        app.add_option("--job", *job, "- : read one delimited Job (proto/wire.proto) from stdin")
            ->capture_default_str();
        return [job] { return score(); };
      },
      chosen);
}

void addRecords(CLI::App& program, Run& chosen) {
  addCommand(
      program, "records", "print the number of records of a database",
      [](CLI::App& app) -> Run {
        auto path = std::make_shared<std::string>();
        auto backend = std::make_shared<std::string>("lmdb");
        app.add_option("path", *path, "the database")->required();
        app.add_option("--backend", *backend, "lmdb")->capture_default_str();
        return [path, backend] {
          const auto db = *backend == "leveldb" ? caffe::DataParameter::LEVELDB : caffe::DataParameter::LMDB;
          std::printf("%lld\n", static_cast<long long>(openSource(db, *path)->size()));
          return 0;
        };
      },
      chosen);
}

}  // namespace crema::cli
