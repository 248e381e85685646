// The data port of a worker: takes connections of other workers from the moment it listens, long before this worker
// has built its nets, and keeps them until its mesh asks for them (collective/mesh.h).
//
// Bytes of a frame: "CRMF" u32 · generation u32 · round u32 (0 hello, 1 scatter, 2 gather, 3 copy) · worker u32 · step u64 ·
// payload bytes u64, little endian. A connection begins, after the proof of the token, with a hello without payload.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/door.h"
#include "base/mutex.h"

namespace crema::collective {

struct FrameHeader {
  static constexpr uint32_t kMagic = 0x464d5243;  // "CRMF"
  static constexpr uint32_t kHello = 0, kScatter = 1, kGather = 2, kCopy = 3;
  uint32_t magic, generation, round, worker;
  uint64_t step, bytes;
};
static_assert(sizeof(FrameHeader) == 32);

class PeerDoor {
 public:
  // Numeric host, any free port; `whose` names the port in log lines.
  PeerDoor(const std::string& host, const Secret& secret, const std::string& whose);
  std::string address() const { return door_.address(); }
  // Waits for an open connection of `worker` in this generation, the latest of several; nullopt at the deadline. Those of
  // earlier generations are closed.
  [[nodiscard]] std::optional<Socket> take(uint32_t worker, uint32_t generation, Deadline deadline,
                                           const Interrupt* interrupt);
  int refused() const { return door_.refused(); }

 private:
  void welcome(Socket socket, const Interrupt& closing);

  Mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::pair<uint32_t, uint32_t>, Socket> waiting_ CREMA_GUARDED_BY(mutex_);  // by generation and worker
  Door door_;  // the last member: its threads use the others
};

}  // namespace crema::collective
