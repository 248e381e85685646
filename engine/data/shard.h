// Which records a rank trains on: blocks of batch_size consecutive records are dealt to ranks in turn. Rank r owns
// block b when b mod R = r, and goes through its own blocks for ever, wrapping inside a batch as Caffe's Data layer
// does. One rank is Caffe. In the first epoch R ranks of batch B see, step by step, the records that one rank of batch
// R B sees. A set too small for that (not every rank would get a block) is dealt in smaller blocks.
#pragma once
#include <algorithm>
#include <cstdint>

namespace crema {

struct Dealing {
  int64_t records;  // in the source
  int batch, ranks;
  int64_t block() const {
    return records > int64_t{batch} * (ranks - 1) ? batch : std::max<int64_t>(1, records / ranks);
  }
};

int64_t ownedRecords(const Dealing& d, int rank);
int64_t recordIndex(const Dealing& d, int rank,
                    int64_t position);  // position: any number >= 0, taken modulo the rank's records
void checkDealing(const Dealing& d);    // kInvalid when there is less than a record per rank

}  // namespace crema
