// The objects behind the handles of crema.h.
#pragma once
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "api/crema.h"
#include "api/planned_passes.h"
#include "base/error.h"
#include "base/pausable_mutex.h"
#include "net/net.h"
#include "solver/solver.h"

namespace crema::api {

// Thrown when a callback of the host returns 0: it failed, and the host has its own exception. Not an Error, as no text
// is added. 0 means failure because ctypes returns 0 for a callback that a signal's exception ended before its first
// line.
struct HostFailure {};
inline void ask(int answer) {
  if (answer == 0) throw HostFailure();
}

void remember(const std::string& sentence);  // crema_last_error() of this thread

// Runs body; an exception becomes a status and the text of crema_last_error().
template <class Body>
int guard(Body&& body) noexcept {
  try {
    body();
    return CREMA_OK;
  } catch (const HostFailure&) {
    return CREMA_HOST;
  } catch (...) {
    const Error e = asError(std::current_exception());
    remember(e.what());
    return CREMA_INVALID + static_cast<int>(e.kind());
  }
}
static_assert(CREMA_INVALID + static_cast<int>(ErrorKind::kInternal) == CREMA_INTERNAL);

// Threads and scratch memory of one net, or of a solver and its nets; locked while one of them computes.
class Compute {
 public:
  Compute();
  kernels::Context kernels;
  using Hold = std::unique_lock<PausableMutex>;  // not annotated: functions return it
  Hold hold();                                   // throws kInvalid in a forked child, which has no threads
  // For what only reads. In a forked child nothing is locked: a thread of the parent may have held the mutex at the
  // fork, and functions that change a net are refused there.
  Hold holdToRead();
  // For a moment: within a computation of another thread while that pauses. kTimeout after ten minutes, reached where
  // two threads each want the other's net from within hosted layers. In a forked child as holdToRead().
  Hold holdBriefly();
  // Calls the host in the middle of a computation, which pauses meanwhile: its nets and blobs are whole.
  template <class Call>
  void askPaused(Call&& call) {
    const PausableMutex::Pause pause(busy_);
    ask(call());
  }
  // Both at once, `other` to be read: two threads that each name the other's net do not wait for each other.
  std::pair<Hold, Hold> holdWith(Compute& other);
  bool inherited() const;  // in a forked child: what has threads must not be destroyed there, as that joins them

 private:
  void checkNotInherited() const;
  PausableMutex busy_;  // recursive: hosted layers, hooks and callbacks may call functions on their own net
  int generation_;
};

bool logsInfo();
uint64_t nextSeed();
int64_t givenSeed();  // -1: none was set
const layers::LayerRegistry& hostRegistry();
int64_t instanceOf(const layers::Layer& layer);  // -1: not a hosted one

// The host's arrays for MemoryData: each pass takes the next batch of them, starting anew at the end.
struct InputArrays {
  const float *data = nullptr, *labels = nullptr;
  int records = 0, next = 0;
  std::vector<int> dims;
  std::unique_ptr<Blob> windows[2];
  // The blobs that the layer reads. Test nets of a solver share them; each fills them before its pass.
  std::shared_ptr<std::vector<const Blob*>> view = std::make_shared<std::vector<const Blob*>>();
  void set(const float* newData, const float* newLabels, int count, const int shape[3]);
  void advance(int batch);
};
// Sets the net's forward hook: where the first layer is a MemoryData without source, the arrays move to the next batch;
// then `hook` is called, unless it is empty.
void advanceBeforeForward(net::Net& net, InputArrays* arrays, const std::function<void(int)>& hook);
bool readsMemorySource(const caffe::NetParameter& net);  // a MemoryData layer that names a database
// The net's first layer, when it is one that takes arrays; else nullptr.
const layers::RecordLayer* leadingMemoryData(const net::Net& net);

struct NetBox {
  NetBox(std::shared_ptr<Compute> e, std::shared_ptr<net::Net> n, std::shared_ptr<InputArrays> f);
  std::shared_ptr<Compute> compute;
  std::shared_ptr<net::Net> net;
  std::shared_ptr<InputArrays> arrays;
  std::vector<std::string> blobNames, inputs;
  std::shared_ptr<PlannedPasses> planned;  // nullptr: a solver's net
  int64_t passes = 0, batches = 0;         // forward passes so far; those among them that ran layers without bottoms
  bool ownsWeights = false;  // a solver updates them in place, so they cannot be replaced by another net's
  const std::vector<std::string>* list(crema_list which, int layer) const;
  int layers() const { return static_cast<int>(net->layers().size()); }

 private:
  std::vector<std::string> names_, types_;
};

void endPlanned(const NetBox& box);  // its planned passes, if it has any

// Throws kInvalid unless the host's struct has at least the fields that this library reads.
void checkSize(const char* name, size_t given, size_t needed);

// compute: of the net; nullptr for blobs of a layer that is being made or run, whose thread holds it.
crema_blob* newBlob(Blob& blob, std::shared_ptr<Compute> compute, bool parameter = false,
                    std::shared_ptr<PlannedPasses> planned = nullptr);
crema_net* newNet(std::unique_ptr<NetBox> box);

}  // namespace crema::api

struct crema_blob {
  std::shared_ptr<crema::Blob> blob;
  std::shared_ptr<crema::api::Compute> compute;
  bool parameter;  // its count must not change: its values lie in the net's flat buffers
  std::shared_ptr<crema::api::PlannedPasses> planned;  // of the net; nullptr: it has none
};
struct crema_memory {
  std::shared_ptr<const void> memory;
};
struct crema_net {
  std::unique_ptr<crema::api::NetBox> box;
};
