// Which records a rank trains on: blocks of batch_size consecutive records are dealt to ranks in turn. Rank r owns
// block b when b mod R = r, and goes through its own blocks for ever, wrapping inside a batch as Caffe's Data layer
// does. One rank is Caffe. In the first epoch R ranks of batch B see, step by step, the records that one rank of batch
// R B sees.
#pragma once
#include <cstdint>

namespace crema {

struct Dealing {
  int64_t records;  // in the source
  int batch, ranks;
};

int64_t ownedRecords(const Dealing& d, int rank);
int64_t recordIndex(const Dealing& d, int rank,
                    int64_t position);  // position: any number >= 0, taken modulo the rank's records
void checkDealing(const Dealing& d);    // kInvalid when a rank would own nothing

}  // namespace crema
