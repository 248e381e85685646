#include "host/plan.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "data/shard.h"
#include "data/source.h"
#include "data/staged_source.h"
#include "host/job_io.h"
#include "model/blob_names.h"
#include "model/filter.h"
#include "model/label_blobs.h"
#include "model/splits.h"
#include "model/upgrade.h"
#include "solver/descriptions.h"
#include "solver/rules.h"
#include "solver/solver.h"

namespace crema::host {
namespace {

// Whether a net filtered by this state keeps the layer.
bool keeps(const caffe::NetState& state, const caffe::LayerParameter& layer) {
  caffe::NetParameter one;
  *one.add_layer() = layer;
  return model::filterNet(one, state).layer_size() == 1;
}

// The host serves one source per phase; further data layers would silently read the same records.
bool sourceOf(const solver::NetDescription& d, wire::Source* out) {
  bool found = false;
  for (int i = 0; i < d.param.layer_size(); ++i) {
    const auto& layer = d.param.layer(i);
    if (!model::takesRecords(layer) || !keeps(d.state, layer)) continue;
    const bool data = layer.type() == "Data", memory = layer.type() == "MemoryData";
    if (found)
      invalid("net '{}' has two data layers in one phase, '{}' and '{}'; a Spark job serves one: join their records",
              d.param.name(), out->layer(), layer.name());
    found = true;
    out->set_layer(layer.name());
    out->set_index(i);
    out->set_type(layer.type());
    out->set_source_class(layer.source_class());
    out->set_source(data     ? layer.data_param().source()
                    : memory ? layer.memory_data_param().source()
                             : layer.cos_data_param().source());
    out->set_batch_size(static_cast<int>(data     ? layer.data_param().batch_size()
                                         : memory ? layer.memory_data_param().batch_size()
                                                  : layer.cos_data_param().batch_size()));
    out->set_backend(data && layer.data_param().backend() == caffe::DataParameter::LEVELDB ? "LEVELDB" : "LMDB");
  }
  return found;
}

// For a database on this machine: checks that every rank gets records. The workers check others.
void checkRecords(const wire::Source& source, int ranks) {
  const bool database = source.source_class().empty() || source.source_class() == "com.yahoo.ml.caffe.LMDB";
  const std::string path = localPath(source.source());
  if (!database || source.type() == "CoSData" || !fileExists(path)) return;
  const bool leveldb = source.backend() == "LEVELDB" && source.source_class().empty();
  const auto records = data::openSource(leveldb ? caffe::DataParameter::LEVELDB : caffe::DataParameter::LMDB, path);
  inside([&] { return "in " + records->describe(); },
         [&] {
           data::checkSharding({records->size(), source.batch_size(), ranks});
         });
}

// Whether shapes are known now: from the data layer itself, or from a database on this machine.
bool buildable(const wire::Source& s) { return s.type() != "Data" || fileExists(localPath(s.source())); }

std::unique_ptr<net::Net> build(const solver::NetDescription& d, kernels::Context& kernels, const std::string& folder) {
  net::NetOptions o;
  o.kernels = &kernels;
  o.data.source = layers::FromNowhere{};
  o.fills = false;
  o.data.folder = folder;
  return std::make_unique<net::Net>(d.param, d.state, o, d.origin);
}

void checkBlobs(const PlanRequest& f, const caffe::NetParameter& filtered, const std::set<std::string>& made) {
  const auto check = [&](const std::string& name) {
    if (!made.count(name))
      invalid("net '{}' has no blob '{}' (its blobs: {})", filtered.name(), name,
              joined(model::blobNames(filtered).made));
  };
  for (const std::string& name : splitList(f.features)) inside([] { return "in -features"; }, [&] { check(name); });
  if (!f.label.empty())
    inside([&] { return fmt::format("in -label {}, which names one more blob for -features", f.label); },
           [&] { check(f.label); });
}

// Bytes of a worker at its peak, to which the TEST net's blobs are added: the executable, its threads' scratch and the
// pages of mapped files it holds (measured: 30 to 90 MiB); the net; batches made ahead; and per parameter histories,
// the copy that is exchanged, partial sums of the tree over ranks, the weights packed for the kernels, and the
// copy that writing a model, or then the solver's state, makes. tests/cluster/test_memory.py compares it with measurements.
int64_t workerBytes(const net::Net& net, int64_t parameters, int histories, int ranks) {
  constexpr int64_t kBase = int64_t{90} << 20, kAhead = 5;
  int64_t batch = 0, copies = 2 + histories + std::max(1, histories);
  for (const Blob* top : net.tops(0)) batch += top->count();
  for (int r = 1; r < ranks; r *= 2) ++copies;
  return kBase + net.memoryBytes() + (kAhead * batch + copies * parameters) * static_cast<int64_t>(sizeof(float));
}

void planTraining(const solver::NetDescription& train, int histories, const PlanRequest& f, kernels::Context& kernels,
                  wire::Plan* plan) {
  plan->set_net_name(train.param.name());
  if (!sourceOf(train, plan->mutable_train())) {
    plan->clear_train();
    if (f.train)
      invalid(
          "net '{}' has no data layer in phase TRAIN that a Spark job serves (Data, MemoryData or CoSData); other "
          "layers, as "
          "HDF5Data, read their files in `crema train`",
          train.param.name());
    return;
  }
  if (f.train) checkRecords(plan->train(), f.ranks);
  if (!buildable(plan->train())) return;
  const auto net = build(train, kernels, parentDirectory(f.solver));
  int64_t parameters = 0;
  for (const auto& p : net->learnables()) parameters += p.blob->count();
  plan->set_parameters(parameters);
  plan->set_memory_bytes(workerBytes(*net, parameters, histories, f.ranks) + f.rows * data::StagedSource::kTableBytes);
}

void planScoring(const solver::NetDescription& test, const PlanRequest& f, kernels::Context& kernels,
                 wire::Plan* plan) {
  if (!sourceOf(test, plan->mutable_test())) {
    plan->clear_test();
    if (f.test || !f.features.empty())
      invalid("net '{}' has no data layer in phase TEST; -test and -features read their rows from it",
              test.param.name());
    return;
  }
  const caffe::NetParameter filtered = model::filterNet(test.param, test.state);
  const auto labels = model::labelBlobs(filtered);
  plan->mutable_need_label()->Assign(labels.dependent.begin(), labels.dependent.end());
  plan->mutable_outputs_without_label()->Assign(labels.outputsWithout.begin(), labels.outputsWithout.end());
  const model::BlobNames blobs = model::blobNames(model::insertSplits(filtered));
  checkBlobs(f, filtered, blobs.made);
  plan->mutable_outputs()->Assign(blobs.outputs.begin(), blobs.outputs.end());
  if (!buildable(plan->test())) return;
  const auto net = build(test, kernels, parentDirectory(f.solver));
  if (!f.weights.empty()) {
    named(f.weights, f.weightsName, [&] { net::copyTrainedFiles(*net, f.weights); });
    for (const auto& name : net->untrained()) plan->add_untrained(name);
  }
  if (plan->has_memory_bytes())
    plan->set_memory_bytes(plan->memory_bytes() + net->memoryBytes() - 8 * plan->parameters());
}

}  // namespace

wire::Plan makePlan(const PlanRequest& f) {
  const caffe::SolverParameter written = model::readSolver(f.solver),
                               solver = solver::prepareSolver(written, f.solver, f.seed);
  const std::string folder = parentDirectory(f.solver);
  wire::Plan plan;
  if (written.random_seed() < 0) plan.set_drawn_seed(solver.random_seed());
  plan.set_solver(solver.SerializeAsString());
  plan.set_net_origin(solver::netOrigin(written));
  plan.set_max_iter(solver.max_iter());
  plan.set_test_interval(solver.test_interval());
  plan.set_test_iter(solver.test_iter_size() ? solver.test_iter(0) : 0);
  plan.set_snapshot(solver.snapshot());
  plan.set_snapshot_prefix(solver.snapshot_prefix());
  plan.set_bytes_per_row(data::StagedSource::kTableBytes);
  kernels::Context kernels(kernels::bestIsa(), 1);
  const solver::NetDescription train = solver::trainDescription(solver, folder, plan.net_origin());
  planTraining(train, solver::ruleOf(solver).histories, f, kernels, &plan);
  if (solver.test_iter_size() > 1)  // one for each test net, as prepareSolver() checked
    invalid("the solver names {} test nets; a Spark job tests with one: keep one test_iter and one test net",
            solver.test_iter_size());
  planScoring(solver::scoringDescription(solver, folder, plan.net_origin()), f, kernels, &plan);
  return plan;
}

}  // namespace crema::host
