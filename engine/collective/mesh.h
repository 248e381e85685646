// All-reduce over W workers: direct reduce-scatter, then all-gather, over one TCP connection per pair.
//
// Worker w owns piece w of the vector (1/W of it, cut at multiples of 16 floats). Every worker sends the owner that
// piece of the sum of each of its whole subtrees (collective/tree.h); the owner adds them in tree order and sends the
// sum to all. Cost per worker: 2 (W-1)/W of the vector out and in (more when its ranks form several subtrees), 2
// rounds. A ring moves the same bytes in 2 (W-1) rounds and adds in an order that depends on W: decided against.
//
// Bytes: a frame header (collective/peer_door.h), then the payload (float32, little endian). A frame of another
// generation, step, round or size ends the connection with an error.
//
// A mesh is of one generation: after a lost or a new worker its members make another one, in which they are numbered
// anew.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/socket.h"
#include "collective/peer_door.h"
#include "collective/tag.h"
#include "collective/tree_sum.h"

namespace crema::collective {

// These workers cannot be reached: no connection came about, nothing came over it in time, what came cannot be trusted, or
// (ended) it is at its end, which says of that worker only that it is gone, or has left first.
class LostPeers : public Error {
 public:
  LostPeers(ErrorKind kind, std::vector<int> workers, std::string message, bool ended = false)
      : Error(kind, std::move(message)), workers_(std::move(workers)), ended_(ended) {}
  const std::vector<int>& workers() const { return workers_; }
  bool ended() const { return ended_; }

 private:
  std::vector<int> workers_;
  bool ended_;
};

struct Bytes {
  char* at = nullptr;
  size_t size = 0;
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int worker() const = 0;
  virtual int workers() const = 0;
  virtual const std::vector<RankRange>& shares() const = 0;  // the ranks of each worker
  // pieces[i]: `count` floats, the sum over the i-th of this worker's wholeSubtrees() (collective/tree.h). On return
  // total[0, count) is the tree sum over all ranks, the same bits on every worker; `total` may be one of the pieces.
  // Throws LostPeers, and the interrupt's error.
  virtual void allReduce(const std::vector<const float*>& pieces, float* total, int64_t count, const Tag& tag) = 0;
  // of[w]: bytes that worker w has, and that each worker for which takes(w) holds has as well on return. All workers
  // name the same sizes. Throws as allReduce() does.
  virtual void copy(const std::vector<Bytes>& of, const std::function<bool(int)>& takes, const Tag& tag) = 0;
  // From another thread: ends a running allReduce() or copy() at once, with an error; no other may follow.
  virtual void abandon() = 0;
  // Whether the thread that trains waits for others from now on: what is then late is not its own computation.
  virtual void setWaiting(bool) {}
  // Seconds of waiting (setWaiting()) until all others had begun what was exchanged: the slower ones still computed. From any thread.
  virtual double waitedForOthers() const { return 0; }
};

// While there is one, the thread that trains waits for others.
class WaitingScope {
 public:
  explicit WaitingScope(Exchange& exchange) : exchange_(exchange) { exchange_.setWaiting(true); }
  ~WaitingScope() { exchange_.setWaiting(false); }
  WaitingScope(const WaitingScope&) = delete;

 private:
  Exchange& exchange_;
};

struct MeshOptions {
  int worker = 0, workers = 1, ranks = 1;
  std::vector<RankRange> shares;  // the ranks of each worker, one after the other; empty: ranksOfWorker()
  std::vector<int> numbers;       // what messages call each worker; empty: its place here
  uint32_t generation = 1;
  Secret secret{""};
  std::vector<std::string> peers;   // data addresses by worker
  std::vector<std::string> tokens;  // of each worker's door, where each has its own; empty: the secret's
  PeerDoor* door = nullptr;         // own data port; it outlives the mesh
  double connectTimeout = 30;       // those that connect to this one have twice the time
  double stepTimeout = 60;          // of an exchange, while no byte moves and nobody computes
  const Interrupt* interrupt = nullptr;
};

class Mesh : public Exchange {
 public:
  explicit Mesh(const MeshOptions& options) : Mesh(options, Unconnected()) { connect(); }
  // Connects to every worker with a smaller number and waits for those with a larger one. Throws LostPeers with all that
  // cannot be reached, and the interrupt's error; the connections that came about stay open until the mesh ends.
  void connect();
  int worker() const override { return options_.worker; }
  int workers() const override { return options_.workers; }
  const std::vector<RankRange>& shares() const override { return options_.shares; }
  void allReduce(const std::vector<const float*>& pieces, float* total, int64_t count, const Tag& tag) override;
  void copy(const std::vector<Bytes>& of, const std::function<bool(int)>& takes, const Tag& tag) override;
  void setWaiting(bool waiting) override { waitingSince_ = waiting ? monotonicSeconds() : kNever; }
  double waitedForOthers() const override { return waitedForOthers_; }
  void abandon() override {
    abandoned_.raise(Error(ErrorKind::kStopped, "an exchange with other workers was abandoned"));
  }

 protected:
  struct Unconnected {};
  Mesh(const MeshOptions& options, Unconnected);  // connect() comes before all others
  // Both from the thread of the exchange. When it was last known that a worker of this mesh computes, or that bytes have
  // moved between any two, by monotonicSeconds(): nobody is late. And that so many bytes of this worker's have moved.
  virtual double someoneAdvanced() const { return 0; }
  virtual void transferred(size_t) {}

 private:
  struct Transfer;
  void planSum();
  Socket connectTo(int worker, Deadline deadline) const;
  void connectToEarlier();
  void awaitLater(Deadline deadline);
  [[noreturn]] void late(const std::vector<Transfer>& transfers, const Tag& tag) const;
  int numberOf(int worker) const {
    return options_.numbers.empty() ? worker : options_.numbers[static_cast<size_t>(worker)];
  }
  void keep(int worker, Socket socket);
  void exchange(std::vector<Transfer>& transfers, uint32_t round, const Tag& tag);
  size_t send(Transfer& t);
  size_t receive(Transfer& t, uint32_t round, const Tag& tag);
  size_t move(Transfer& t, uint32_t round, const Tag& tag);
  void countWaiting(double from, double to);
  int64_t cut(int w, int64_t count) const;  // first element of piece w
  void addTree(const std::vector<const float*>& pieces, int64_t first, int64_t size, float* total);

  static constexpr double kNever = std::numeric_limits<double>::infinity();
  MeshOptions options_;
  Interrupt abandoned_;
  std::atomic<double> waitingSince_ = kNever, waitedForOthers_ = 0;
  std::vector<Socket> sockets_;                    // by worker; own is closed
  std::vector<std::vector<RankRange>> subtrees_;   // by worker
  std::vector<std::pair<size_t, size_t>> leaves_;  // of sum_: worker, and which of its subtrees
  TreeSum sum_;                                    // over all workers' subtrees
  std::vector<std::vector<float>> incoming_;       // by worker: its parts of my piece, one after the other
};

}  // namespace crema::collective
