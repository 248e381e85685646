// Which records a rank trains on: blocks of batch_size consecutive records are dealt to ranks in turn. Rank r owns
// block b when b mod R = r, and goes through its own blocks for ever, wrapping inside a batch as Caffe's Data layer
// does. One rank is Caffe. In the first epoch R ranks of batch B see, step by step, the records that one rank of batch
// R B sees. A set too small for that (not every rank would get a block) is dealt in smaller blocks.
#pragma once
#include <algorithm>
#include <cstdint>

namespace crema::data {

struct Dealing {
  int64_t records;  // in the source
  int batch, ranks;
  int64_t block() const {
    return records > int64_t{batch} * (ranks - 1) ? batch : std::max<int64_t>(1, records / ranks);
  }
};

// Test batches are one endless sequence over all tests of a run: batch g is worker (g mod cycle) mod workers's, cycle
// being records / batch where that divides, so that a worker needs its own records only; else cycle is 0 and the batch
// worker (g mod workers)'s, who needs them all. The rule says who computes, never what.
struct TestDealing {
  int64_t cycle = 0;
  int workers = 1;
  static int64_t cycleOf(int64_t records, int batch) { return batch > 0 && records % batch == 0 ? records / batch : 0; }
  int owner(int64_t g) const { return static_cast<int>((cycle ? g % cycle : g) % workers); }
  int64_t after(int64_t g) const;  // the owner's next batch
};

int64_t ownedRecords(const Dealing& d, int rank);
int64_t recordIndex(const Dealing& d, int rank,
                    int64_t position);  // position: any number >= 0, taken modulo the rank's records
void checkDealing(const Dealing& d);    // kInvalid when there is less than a record per rank

}  // namespace crema::data
