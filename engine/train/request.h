// Requests to a run: a snapshot, a stop, or both. They come from signals and from a host program, and reach all workers
// because they travel with what all workers sum.
#pragma once

namespace crema::train {

// Bits. kEnd: this process is being terminated: a snapshot and a stop for all, and the run counts as failed. kPause: run()
// returns behind this step, so that the run goes on with other workers. kLeave: this process is being terminated, and the
// others go on without it: a pause; or the end, where all leave. kCounted: a snapshot of those that all processes are asked
// for and count (TrainHooks::snapshots).
enum class Request : unsigned {
  kNone = 0,
  kSnapshot = 1,
  kStop = 2,
  kSnapshotAndStop = 3,
  kEnd = 7,
  kPause = 8,
  kLeave = 16,
  kCounted = 32
};
constexpr int kRequestBits = 6;

constexpr Request operator|(Request a, Request b) {
  return static_cast<Request>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool wantsCounted(Request r) { return static_cast<unsigned>(r) & 32; }
constexpr bool wantsSnapshot(Request r) { return static_cast<unsigned>(r) & (1 | 32); }
constexpr bool wantsStop(Request r) { return static_cast<unsigned>(r) & 2; }
constexpr bool wantsEnd(Request r) { return static_cast<unsigned>(r) & 4; }
constexpr bool wantsPause(Request r) { return static_cast<unsigned>(r) & (8 | 16); }
constexpr Request withoutPause(Request r) { return static_cast<Request>(static_cast<unsigned>(r) & 7); }
constexpr Request withoutSnapshot(Request r) { return static_cast<Request>(static_cast<unsigned>(r) & ~1u); }
constexpr Request withoutCounted(Request r) { return static_cast<Request>(static_cast<unsigned>(r) & ~32u); }

// Writes a request as kRequestBits numbers, 0 or 1, to be summed over workers, `all` of them: a bit of the sum is set when
// any of them has set it. Where all leave, the run ends.
inline void writeRequest(Request r, float* to) {
  for (unsigned bit = 0; bit < kRequestBits; ++bit) to[bit] = static_cast<unsigned>(r) >> bit & 1 ? 1.f : 0.f;
}
inline Request requestOf(const float* sums, int all) {
  Request any = Request::kNone;
  for (unsigned bit = 0; bit < kRequestBits; ++bit)
    if (sums[bit] > 0) any = any | static_cast<Request>(1u << bit);
  constexpr int kLeaveBit = 4;
  static_assert(static_cast<unsigned>(Request::kLeave) == 1u << kLeaveBit);
  return sums[kLeaveBit] >= static_cast<float>(all) ? any | Request::kEnd : any;
}

}  // namespace crema::train
