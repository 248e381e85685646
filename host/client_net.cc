#include "host/client_net.h"

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "base/log.h"
#include "base/random_bytes.h"
#include "base/sha256.h"
#include "base/thread_pool.h"
#include "host/job_io.h"
#include "model/upgrade.h"
#include "solver/descriptions.h"

namespace crema::host {
namespace {

constexpr double kConnectSeconds = 9;  // those that connect have half of it (collective/mesh.h)
constexpr double kStepSeconds = 600;   // how long a node waits for others, which may compute, test or read

// A snapshot_format that this engine cannot write is replaced by the default; the files' names show it.
caffe::SolverParameter prepared(caffe::SolverParameter p, const engine::Open& open) {
  if (p.snapshot_format() == caffe::SolverParameter::HDF5) {
    try {
      solver::checkSolver(p);
    } catch (const Error& e) {
      LOG_WARNING("{}: {}; snapshots will be BINARYPROTO", open.solver(), e.what());
      p.set_snapshot_format(caffe::SolverParameter::BINARYPROTO);
    }
  }
  return solver::prepareSolver(std::move(p), open.solver());
}

void put(const Blob& from, engine::Blob* out) {
  for (int d : from.shape().dims()) out->add_dim(d);
  out->set_data(from.data<float>(), static_cast<size_t>(from.count()) * sizeof(float));
}

void checkOpen(const engine::Open& o) {
  if (o.cluster_size() < 1 || o.cluster_size() > 65536)
    invalid("cluster size must be positive, not {}", o.cluster_size());
  if (o.rank() < 0 || o.rank() >= o.cluster_size())
    invalid("node rank {}: a cluster of {} has ranks 0 to {}", o.rank(), o.cluster_size(), o.cluster_size() - 1);
  checkThreads(o.threads(), "threads");
}

// "host:port/key" as two: with a number behind the last colon; the socket checks that the host is numeric. A key is no text to
// show.
std::pair<std::string, std::string> addressAndKey(const std::string& whole, int rank) {
  const size_t slash = std::min(whole.find('/'), whole.size());
  const std::string address = whole.substr(0, slash), key = whole.substr(std::min(slash + 1, whole.size()));
  const size_t colon = address.rfind(':');
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  const bool digits = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || colon == 0 || std::stoi(port) < 1 || std::stoi(port) > 65535 || key.empty())
    invalid(
        "the address of node {} begins '{}'; give the whole of what its localAddresses() said, such as "
        "10.0.0.4:5012/KEY",
        rank, whole.substr(0, std::min<size_t>(std::min(colon, slash) + 6, 24)));
  return {address, key};
}

}  // namespace

void ClientNet::RequestBlobs::take(const google::protobuf::RepeatedPtrField<engine::Blob>& from) {
  blobs.clear(), view.clear();
  for (const engine::Blob& b : from) {
    const Shape shape(std::vector<int>(b.dim().begin(), b.dim().end()));
    if (b.data().size() != static_cast<size_t>(shape.count()) * sizeof(float))
      badData("a blob of {} comes with {} bytes", shape.brief(), b.data().size());
    blobs.push_back(std::make_unique<Blob>(shape, DType::kFloat32));
    std::memcpy(blobs.back()->mutableData<float>(), b.data().data(), b.data().size());
    view.push_back(blobs.back().get());
  }
}

ClientNet::ClientNet(const engine::Open& open, const Interrupt& interrupt)
    : open_(open), interrupt_(interrupt), key_(sha256Hex(randomBytes(32))) {
  checkOpen(open);
  const caffe::SolverParameter written = model::readSolver(open.solver()), param = prepared(written, open);
  prefix_ = param.snapshot_prefix();
  kernels_ = std::make_unique<kernels::Context>(kernels::bestIsa(), open.threads());
  solver::SolverOptions o;
  o.kernels = kernels_.get();
  o.seed = static_cast<uint64_t>(param.random_seed());
  o.folder = parentDirectory(open.solver());
  o.origin = solver::netOrigin(written);
  o.log = open.rank() == 0;
  o.hostLooks = open.training();  // predict() may ask for any blob
  o.trainData.ranks = open.cluster_size();
  o.trainData.myRanks = {open.rank()};
  o.trainData.source = layers::FromBlobs{&trainBlobs_.view};
  o.testData.source = layers::FromBlobs{&testBlobs_.view};
  solver_ = std::make_unique<solver::Solver>(param, o);
  if (!open.state().empty())
    solver_->restore(open.state(), open.model());
  else if (!open.model().empty())
    solver_->copyTrainedFrom(open.model());
  if (!open.training() || open.validation_net() != 0) validationNet();
  if (open.cluster_size() == 1)
    makeStep();
  else
    door_ = std::make_unique<collective::PeerDoor>(open.host().empty() ? localHost() : open.host(),
                                                   Secret(tokenOf(key_), open.encrypted()),
                                                   fmt::format("node {}'s port", open.rank()));
}

net::Net& ClientNet::validationNet() {
  const int i = open_.validation_net();
  if (i < 0 || static_cast<size_t>(i) >= solver_->testNets())
    invalid("there is no test net {}: {} describes {}; give test_iter, and a data layer in phase TEST", i,
            open_.solver(), solver_->testNets());
  return solver_->testNet(static_cast<size_t>(i));
}

void ClientNet::describe(engine::Opened* out) {
  const auto& p = solver_->param();
  out->set_iteration(solver_->iteration());
  out->set_max_iter(p.max_iter());
  out->set_test_iter(p.test_iter_size() ? p.test_iter(0) : 0);
  out->set_test_interval(p.test_interval());
  if (solver_->testNets())
    for (const auto& name : validationNet().outputs()) out->add_output(name);
  out->set_snapshot_prefix(prefix_);
  const std::string model = solver_->snapshotNames(prefix_).model, extension = ".caffemodel";
  out->set_snapshot_suffix(model.substr(model.rfind(extension) + extension.size()));
  if (door_) out->set_address(door_->address() + "/" + key_);
}

std::string ClientNet::tokenOf(const std::string& key) const {
  std::string all = fmt::format("{}, crema engine, {} nodes", key, open_.cluster_size());
  for (const auto& p : solver_->net().learnables()) all += "; " + p.label + " " + p.blob->shape().brief();
  return sha256Hex(all);
}

void ClientNet::connect(const engine::Addresses& addresses) {
  if (open_.cluster_size() == 1) return;
  if (addresses.address_size() != open_.cluster_size())
    invalid("{} addresses are given for {} nodes", addresses.address_size(), open_.cluster_size());
  collective::MeshOptions o;
  o.worker = open_.rank(), o.workers = o.ranks = open_.cluster_size();
  for (int w = 0; w < o.workers; ++w) {
    const auto [address, key] =
        w == o.worker ? std::pair<std::string, std::string>() : addressAndKey(addresses.address(w), w);
    o.peers.push_back(address), o.tokens.push_back(tokenOf(key));
  }
  o.door = door_.get();
  o.connectTimeout = kConnectSeconds / 2, o.stepTimeout = kStepSeconds;
  o.interrupt = &interrupt_;
  mesh_.reset();
  mesh_ = std::make_unique<collective::Mesh>(o);
  makeStep();
  beginTogether();
}

void ClientNet::makeStep() {
  const int rank = open_.rank();
  step_ =
      std::make_unique<train::Step>(*solver_, mesh_.get(), collective::RankRange{rank, rank + 1}, open_.cluster_size());
}

// All nodes take rank 0's weights and history: in an all-reduce the others contribute zeros. Iterations must agree, as
// frames carry the step.
void ClientNet::beginTogether() {
  for (Blob* b : {&solver_->net().flatData(), &solver_->history()}) {
    float* values = b->mutableData<float>();
    if (open_.rank() != 0) std::fill_n(values, b->count(), 0.f);
    mesh_->allReduce({values}, values, b->count(), collective::Tag::state(solver_->iteration()));
  }
}

void ClientNet::sync() {
  if (open_.cluster_size() == 1) return;
  if (!mesh_) invalid("this node of {} is not connected; call connect with all addresses first", open_.cluster_size());
  std::vector<float> nothing(16 * static_cast<size_t>(open_.cluster_size()), 0.f);
  mesh_->allReduce({nothing.data()}, nothing.data(), static_cast<int64_t>(nothing.size()),
                   collective::Tag::barrier(syncs_++));
}

void ClientNet::train(const engine::Blobs& data) {
  if (open_.cluster_size() > 1 && !mesh_)
    invalid("this node of {} is not connected; call connect with all addresses first", open_.cluster_size());
  trainBlobs_.take(data.blob());
  const auto pass = [&](int rank, const train::Step::Done& done) { return solver_->computeGradient(rank, done); };
  const train::Step::Sum sum = step_->run(pass, nullptr);
  logStep(sum.loss);
  solver_->applyUpdate(sum.gradient, open_.cluster_size());
}

void ClientNet::logStep(double loss) {
  const double smooth = solver_->smoothLoss(loss);
  const int every = solver_->param().display();
  if (open_.rank() == 0 && every > 0 && solver_->iteration() % every == 0)
    LOG_INFO("Iteration {}, loss = {:.6g}", solver_->iteration(), smooth);
}

void ClientNet::predict(const engine::Predict& request, engine::Blobs* out) {
  net::Net& net = open_.training() ? solver_->net() : validationNet();
  for (const auto& name : request.name()) net.blob(name);  // unknown names fail before anything is computed
  (open_.training() ? trainBlobs_ : testBlobs_).take(request.data());
  net.setStep(open_.training() ? static_cast<int64_t>(solver_->iteration()) * solver_->param().iter_size() : passes_++,
              open_.rank());
  net.forward();
  for (const auto& name : request.name()) put(net.blob(name), out->add_blob());
}

void ClientNet::validate(const engine::Blobs& data, engine::Blobs* out) {
  net::Net& net = validationNet();
  testBlobs_.take(data.blob());
  net.setStep(passes_++, open_.rank());
  scores_.add(net, net.forward());
  for (const auto& name : net.outputs()) put(net.blob(name), out->add_blob());
}

// Means over the batches received; Caffe divides by test_iter, which is equal when all of them were received.
void ClientNet::aggregate(engine::Blobs* out) {
  net::Net& net = validationNet();
  if (scores_.passes() == 0) invalid("no validation batch has come since the last aggregate");
  LOG_INFO("Iteration {}, Testing net (#{})", solver_->iteration(), open_.validation_net());
  if (solver_->param().test_compute_loss()) LOG_INFO("Test loss: {:.6g}", scores_.loss());
  const std::vector<double> means = scores_.means();
  solver::logOutputs(net, means, "Test net output");
  size_t at = 0;
  for (const auto& name : net.outputs()) {
    Blob mean(net.blob(name).shape(), DType::kFloat32);
    for (int k = 0; k < mean.count(); ++k) mean.mutableData<float>()[k] = static_cast<float>(means[at++]);
    put(mean, out->add_blob());
  }
  scores_ = {};
}

void ClientNet::snapshot(engine::Snapshot* out) {
  const solver::SnapshotFiles files = solver_->snapshot(prefix_);
  out->set_iteration(solver_->iteration());
  out->set_model(files.model), out->set_state(files.state);
}

std::string ClientNet::weightsDigest() {
  Blob& all = solver_->net().flatData();
  return sha256Hex(
      {reinterpret_cast<const char*>(all.data<float>()), static_cast<size_t>(all.count()) * sizeof(float)});
}

}  // namespace crema::host
