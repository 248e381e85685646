// Which records a rank trains on: blocks of batch_size consecutive records are assigned to ranks in turn. Rank r owns
// block b when b mod R = r, and repeats its own blocks endlessly, wrapping inside a batch as Caffe's Data layer does.
// With one rank this is Caffe's order. In the first epoch R ranks with batch B read, step by step, the records of one
// rank with batch R B. Where records are too few to give every rank a block, blocks are smaller.
#pragma once
#include <algorithm>
#include <cstdint>

namespace crema::data {

struct Sharding {
  int64_t records;  // in the source
  int batch, ranks;
  int64_t block() const {
    return records > int64_t{batch} * (ranks - 1) ? batch : std::max<int64_t>(1, records / ranks);
  }
};

// Test batches are one endless sequence over all tests of a run: worker (g mod cycle) mod workers owns batch g, cycle
// being records / batch where that is a whole number, so that a worker needs its own records only. Else cycle is 0 and
// worker g mod workers owns it, and each needs all records. The owner affects who computes a batch, never its result.
struct TestSharding {
  int64_t cycle = 0;
  int workers = 1;
  static int64_t cycleOf(int64_t records, int batch) { return batch > 0 && records % batch == 0 ? records / batch : 0; }
  int owner(int64_t g) const { return static_cast<int>((cycle ? g % cycle : g) % workers); }
  int64_t after(int64_t g) const;  // the owner's next batch
};

int64_t ownedRecords(const Sharding& d, int rank);
int64_t recordIndex(const Sharding& d, int rank,
                    int64_t position);  // position: any number >= 0, taken modulo the rank's records
void checkSharding(const Sharding& d);  // throws kInvalid for fewer records than ranks

}  // namespace crema::data
