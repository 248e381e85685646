// A solver and its nets for a client that sends every batch itself: `crema engine`, used by jcaffe.CaffeNet.
//
// A node of a cluster is one rank: train() on W nodes is one process with W ranks, bit for bit. Nodes find each other
// by the addresses alone, as CaffeOnSpark's do. So an address ends with a key that its node has drawn, and who was given it is
// let in; cluster size and parameter shapes count as well, so that nodes of another run or net refuse each other.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/socket.h"
#include "collective/mesh.h"
#include "engine.pb.h"
#include "solver/outputs.h"
#include "solver/solver.h"
#include "train/step.h"

namespace crema::host {

class ClientNet {
 public:
  ClientNet(const engine::Open& open, const Interrupt& interrupt);
  void describe(engine::Opened* out);

  void connect(const engine::Addresses& addresses);  // throws within kConnectSeconds
  void sync();
  void train(const engine::Blobs& data);
  void predict(const engine::Predict& request, engine::Blobs* out);
  void validate(const engine::Blobs& data, engine::Blobs* out);
  void aggregate(engine::Blobs* out);
  void snapshot(engine::Snapshot* out);
  std::string weightsDigest();

 private:
  using Batch = std::vector<const Blob*>;
  struct RequestBlobs {  // the blobs of a request, as the net's data layers read them
    std::vector<std::unique_ptr<Blob>> blobs;
    Batch view;
    void take(const google::protobuf::RepeatedPtrField<engine::Blob>& from);
  };
  net::Net& validationNet();
  std::string tokenOf(const std::string& key) const;
  void makeStep();
  void beginTogether();
  void logStep(double loss);

  engine::Open open_;
  const Interrupt& interrupt_;
  std::string key_;  // of this node's address
  std::string prefix_;
  std::unique_ptr<kernels::Context> kernels_;
  RequestBlobs trainBlobs_, testBlobs_;
  std::unique_ptr<solver::Solver> solver_;
  std::unique_ptr<collective::PeerDoor> door_;
  std::unique_ptr<collective::Mesh> mesh_;  // null for a single node and before connect()
  std::unique_ptr<train::Step> step_;       // over the mesh
  int64_t passes_ = 0, syncs_ = 0;          // counts: predictions and validations; barriers
  solver::OutputSums scores_;               // of the validation batches since the last aggregate
};

}  // namespace crema::host
