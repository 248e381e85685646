// The functions of crema.h for the whole process: errors, log, seeds, threads, layer types.
#include <pthread.h>

#include <cstring>

#include "api/handles.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/random_bytes.h"
#include "base/thread_pool.h"

namespace crema::api {
namespace {

thread_local std::string lastError;
std::atomic<int> logLevel{0}, threads{0};
Mutex seedMutex;
uint64_t seed CREMA_GUARDED_BY(seedMutex) = 0, seedsGiven CREMA_GUARDED_BY(seedMutex) = 0;
bool seedSet CREMA_GUARDED_BY(seedMutex) = false;

std::atomic<int>& forks() {
  static std::atomic<int> count{0};
  static const int counted = pthread_atfork(nullptr, nullptr, [] { ++count; });
  (void)counted;
  return count;
}

}  // namespace

void remember(const std::string& sentence) { lastError = sentence; }
bool logsInfo() { return logLevel == 0; }

Compute::Compute() : kernels(kernels::bestIsa(), threads.load()), generation_(forks()) {}

void checkSize(const char* name, size_t given, size_t needed) {
  if (given < needed)
    invalid("{} is of {} bytes, this library reads {}; set its size fields, or compile against this library's crema.h",
            name, given, needed);
}

bool Compute::inherited() const { return generation_ != forks(); }

void Compute::checkNotInherited() const {
  if (inherited())
    invalid(
        "this net was made before the process fork()ed, and its threads stayed in the parent; make nets in the child, "
        "or start children with multiprocessing's 'spawn'");
}

Compute::Hold Compute::hold() {
  checkNotInherited();
  return Hold(busy_);
}

Compute::Hold Compute::holdToRead() { return inherited() ? Hold() : Hold(busy_); }

Compute::Hold Compute::holdBriefly() {
  constexpr double kLongest = 600;
  if (inherited()) return {};
  if (!busy_.lockBriefly(Deadline::after(kLongest)))
    throw Error(ErrorKind::kTimeout,
                fmt::format("another thread has computed with this net for {:.0f} s; read its blobs from a callback of "
                            "the solver, or when it is done",
                            kLongest));
  return Hold(busy_, std::adopt_lock);
}

std::pair<Compute::Hold, Compute::Hold> Compute::holdWith(Compute& other) {
  checkNotInherited();
  if (other.inherited()) return {Hold(busy_), Hold()};
  Hold mine(busy_, std::defer_lock), others(other.busy_, std::defer_lock);
  std::lock(mine, others);
  return {std::move(mine), std::move(others)};
}

int64_t givenSeed() {
  const MutexLock lock(seedMutex);
  if (!seedSet) return -1;
  return static_cast<int64_t>((seed + 0x9e3779b97f4a7c15u * seedsGiven++) & 0x7fffffff);
}

uint64_t nextSeed() {
  if (const int64_t given = givenSeed(); given >= 0) return static_cast<uint64_t>(given);
  uint64_t drawn = 0;
  std::memcpy(&drawn, randomBytes(sizeof drawn).data(), sizeof drawn);
  return drawn;
}

}  // namespace crema::api

using namespace crema;
using namespace crema::api;

const char* crema_version(void) { return CREMA_VERSION; }
const char* crema_last_error(void) { return lastError.c_str(); }

void crema_set_log_level(int lowest) {
  logLevel = lowest;
  setLogLevel(lowest <= 0 ? LogLevel::kInfo : lowest == 1 ? LogLevel::kWarning : LogLevel::kError);
}

void crema_log(int level, const char* text) {
  writeLog(level <= 0 ? LogLevel::kInfo : level == 1 ? LogLevel::kWarning : LogLevel::kError, "host", 1, text);
}

int crema_set_random_seed(uint64_t value) {
  const MutexLock lock(seedMutex);
  seed = value, seedsGiven = 0, seedSet = true;
  return CREMA_OK;
}

int crema_set_threads(int count) {
  return guard([&] {
    checkThreads(count, "threads");
    threads = count;
  });
}

int crema_layer_types(void) { return static_cast<int>(layers::builtinLayers().entries().size()); }

const char* crema_layer_type(int i) {
  if (i < 0 || i >= crema_layer_types()) return nullptr;
  return std::next(layers::builtinLayers().entries().begin(), i)->first.c_str();
}
