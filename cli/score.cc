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

const caffe::LayerParameter& dataLayer(const caffe::NetParameter& net) {
  for (const auto& layer : net.layer())
    if (layer.type() == "Data" || layer.type() == "MemoryData" || layer.type() == "CoSData") return layer;
  invalid("net '{}' has no data layer in phase TEST; rows are read from it", net.name());
}

// A blob's values per row; a blob without a row axis of this batch (accuracy, loss) is repeated on every row.
void fillColumn(const Blob& blob, const std::string& name, int rows, wire::Event::Column* column) {
  const bool perRow = blob.shape().axes() > 0 && blob.shape()[0] == rows;
  const int width = perRow ? blob.count() / rows : blob.count();
  column->set_name(name);
  column->set_width(width);
  const auto* data = blob.data<float>();
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < width; ++i) column->add_value(data[perRow ? r * width + i : i]);
}

int64_t scoreAll(const wire::Job& job, Interrupt& interrupt) {
  caffe::SolverParameter solver;
  if (!solver.ParseFromString(job.solver()))
    badData("the job's solver cannot be read; host and executable are of different versions");
  const NetDescription d = testNetOf(solver, job.net_origin());
  kernels::Context kernels(kernels::chooseIsa(job.isa()), job.threads() > 0 ? job.threads() : availableCores());
  const caffe::NetParameter filtered = filterNet(d.param, d.state);
  const caffe::LayerParameter& layer = dataLayer(filtered);
  NetOptions o;
  o.kernels = &kernels;
  o.seed = static_cast<uint64_t>(solver.random_seed());
  o.data.source = job.test_source();
  o.data.scoring = true;
  o.data.first = job.first(), o.data.last = job.last();
  Net net(d.param, d.state, o, d.origin);
  if (job.weights().empty()) invalid("no weights are given to score with; name a .caffemodel (-model)");
  net.copyTrainedFrom(readNetBinary(job.weights()), job.weights());
  std::vector<std::string> blobs(job.blobs().begin(), job.blobs().end());
  if (blobs.empty()) blobs = net.outputs();
  for (const auto& name : blobs) net.blob(name);
  const auto source = openSource(
      caffe::DataParameter::LMDB,
      job.test_source().empty() ? layer.memory_data_param().source() + layer.data_param().source() : job.test_source());
  const int64_t last = job.last() < 0 ? source->size() : std::min(job.last(), source->size());
  const int batch = net.tops(0)[0]->shape()[0];
  int64_t done = 0;
  for (int64_t at = job.first(), k = 0; at < last; at += batch, ++k) {
    interrupt.check();
    net.setStep(k, 0);
    net.forward();
    const int rows = static_cast<int>(std::min<int64_t>(batch, last - at));
    wire::Event event;
    for (int r = 0; r < rows; ++r) {
      const auto key = source->read(at + r).key;
      event.mutable_rows()->add_id(std::string(key));
    }
    for (const auto& name : blobs) fillColumn(net.blob(name), name, rows, event.mutable_rows()->add_column());
    writeDelimited(STDOUT_FILENO, event);
    done += rows;
  }
  return done;
}

int score() {
  setLogLevel(LogLevel::kWarning);
  const wire::Job job = readJob(STDIN_FILENO);
  Interrupt& interrupt = *new Interrupt;  // never freed: the stdin watcher may outlive this call
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
