// All-reduce over W workers: direct reduce-scatter, then all-gather, over one TCP connection per pair.
//
// Worker w owns piece w of the vector (1/W of it, cut at multiples of 16 floats). Every worker sends the owner that
// piece of the sum of each of its whole subtrees (collective/tree.h); the owner adds them in tree order and sends the
// sum to all. Cost per worker: 2 (W-1)/W of the vector out and in (more when its ranks form several subtrees), 2
// rounds. A ring moves the same bytes in 2 (W-1) rounds and adds in an order that depends on W: decided against.
//
// Bytes: a frame header (collective/peer_door.h), then the payload (float32, little endian). A frame of another
// generation, step, round or size ends the connection with an error.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/socket.h"
#include "collective/peer_door.h"
#include "collective/tag.h"
#include "collective/tree_sum.h"

namespace crema::collective {

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int worker() const = 0;
  virtual int workers() const = 0;
  // pieces[i]: `count` floats, the sum over the i-th of this worker's wholeSubtrees() (collective/tree.h). On return
  // total[0, count) is the tree sum over all ranks, the same bits on every worker; `total` may be one of the pieces.
  // Throws kPeer when a worker is gone, and the interrupt's error.
  virtual void allReduce(const std::vector<const float*>& pieces, float* total, int64_t count, const Tag& tag) = 0;
  // From another thread: ends a running allReduce() within a second, with an error; no other may follow.
  virtual void abandon() = 0;
  // Whether the thread that trains waits for others from now on: what is then late is not its own computation.
  virtual void setWaiting(bool) {}
};

struct MeshOptions {
  int worker = 0, workers = 1, ranks = 1;
  uint32_t generation = 1;
  std::string token;
  std::vector<std::string> peers;  // data addresses by worker
  PeerDoor* door = nullptr;        // own data port; it outlives the mesh
  double connectTimeout = 30, stepTimeout = 60;
  const Interrupt* interrupt = nullptr;
};

class Mesh : public Exchange {
 public:
  // Connects to every worker with a smaller number and waits for those with a larger one.
  explicit Mesh(const MeshOptions& options);
  int worker() const override { return options_.worker; }
  int workers() const override { return options_.workers; }
  void allReduce(const std::vector<const float*>& pieces, float* total, int64_t count, const Tag& tag) override;
  void abandon() override { abandoned_ = true; }

 private:
  struct Transfer;
  void connectAll();
  void exchange(std::vector<Transfer>& transfers, uint32_t round, const Tag& tag);
  void send(Transfer& t);
  void receive(Transfer& t, uint32_t round, const Tag& tag);
  int64_t cut(int w, int64_t count) const;  // first element of piece w
  void addTree(const std::vector<const float*>& pieces, int64_t first, int64_t size, float* total);

  MeshOptions options_;
  std::atomic<bool> abandoned_ = false;
  std::vector<Socket> sockets_;                    // by worker; own is closed
  std::vector<std::vector<RankRange>> subtrees_;   // by worker
  std::vector<std::pair<size_t, size_t>> leaves_;  // of sum_: worker, and which of its subtrees
  TreeSum sum_;                                    // over all workers' subtrees
  std::vector<std::vector<float>> incoming_;       // by worker: its parts of my piece, one after the other
};

}  // namespace crema::collective
