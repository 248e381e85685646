// What stands behind the handles of crema.h.
#pragma once
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/crema.h"
#include "base/error.h"
#include "net/net.h"
#include "solver/solver.h"

namespace crema::api {

// A callback of the host failed and knows why. No Error: nothing is to be added to its story. It answers 0 then: what
// ctypes answers for a callback that a signal's exception ended before its first line.
struct HostFailure {};
inline void ask(int answer) {
  if (answer == 0) throw HostFailure();
}

void remember(const std::string& sentence);  // crema_last_error() of this thread

// Runs body; what leaves it becomes a status and a sentence.
template <class Body>
int guard(Body&& body) noexcept {
  try {
    body();
    return CREMA_OK;
  } catch (const HostFailure&) {
    return CREMA_HOST;
  } catch (const Error& e) {
    remember(e.what());
    return CREMA_INVALID + static_cast<int>(e.kind());
  } catch (const std::bad_alloc&) {
    remember("out of memory; use smaller batches or fewer nets");
    return CREMA_IO;
  } catch (const std::exception& e) {
    remember(e.what());
    return CREMA_INTERNAL;
  }
}
static_assert(CREMA_INVALID + static_cast<int>(ErrorKind::kInternal) == CREMA_INTERNAL);

// Threads and scratch memory of one net, or of a solver and its nets. Whoever computes holds it.
class Compute {
 public:
  Compute();
  kernels::Context kernels;
  using Hold = std::unique_lock<std::recursive_mutex>;
  Hold hold();             // invalid() in a process that fork() made since: the threads are not there
  bool inherited() const;  // in such a process: what has threads must not be destroyed, which would wait for them

 private:
  std::recursive_mutex busy_;  // recursive: a hosted layer may look at the net that it is part of
  int generation_;
};

bool logsInfo();
uint64_t nextSeed();
int64_t givenSeed();  // -1: none was set
const layers::LayerRegistry& hostRegistry();
int64_t instanceOf(const layers::Layer& layer);  // -1: not a hosted one

// The host's arrays for MemoryData: a window of one batch moves over them, round and round.
struct InputArrays {
  const float *data = nullptr, *labels = nullptr;
  int records = 0, next = 0;
  std::vector<int> dims;
  std::unique_ptr<Blob> windows[2];
  // What the layer is shown; test nets of a solver share it, each fills it before its pass.
  std::shared_ptr<std::vector<const Blob*>> view = std::make_shared<std::vector<const Blob*>>();
  void set(const float* newData, const float* newLabels, int count, const int shape[3]);
  void advance(int batch);
};
// Before its first layer, a MemoryData without source, the arrays move on; then `hook` is called, which may be empty.
void advanceBeforeForward(net::Net& net, InputArrays* arrays, const std::function<void(int)>& hook);
bool readsMemorySource(const caffe::NetParameter& net);  // a MemoryData layer that names a database

struct NetBox {
  NetBox(std::shared_ptr<Compute> e, std::shared_ptr<net::Net> n, std::shared_ptr<InputArrays> f);
  std::shared_ptr<Compute> compute;
  std::shared_ptr<net::Net> net;
  std::shared_ptr<InputArrays> arrays;
  std::vector<std::string> blobNames, inputs;
  int64_t passes = 0, batches = 0;  // forwards so far, and those of them that ran layers without bottoms
  bool ownsWeights = false;         // a solver updates them where they are
  const std::vector<std::string>* list(crema_list which, int layer) const;
  int layers() const { return static_cast<int>(net->layers().size()); }

 private:
  std::vector<std::string> names_, types_;
};

// invalid() unless a struct of the host's has at least the fields that this library reads.
void checkSize(const char* name, size_t given, size_t needed);

crema_blob* newBlob(Blob& blob, bool parameter = false);
crema_net* newNet(std::unique_ptr<NetBox> box);

}  // namespace crema::api

struct crema_blob {
  std::shared_ptr<crema::Blob> blob;
  bool parameter;  // it keeps its count: the layer reads so many values, and they lie in the net's flat buffers
};
struct crema_memory {
  std::shared_ptr<const void> memory;
};
struct crema_net {
  std::unique_ptr<crema::api::NetBox> box;
};
