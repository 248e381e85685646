#include "data/shard.h"

#include "base/error.h"

namespace crema {

int64_t ownedRecords(const Dealing& d, int rank) {
  const int64_t full = d.records / d.batch, rest = d.records % d.batch;
  int64_t own = (full / d.ranks + (rank < full % d.ranks ? 1 : 0)) * d.batch;
  if (rest && full % d.ranks == rank) own += rest;  // the short last block
  return own;
}

int64_t recordIndex(const Dealing& d, int rank, int64_t position) {
  const int64_t p = position % ownedRecords(d, rank);
  return (p / d.batch * d.ranks + rank) * d.batch +
         p % d.batch;  // only the very last block is short, so blocks before are full
}

void checkDealing(const Dealing& d) {
  if (d.batch <= 0) invalid("batch_size must be positive, not {}", d.batch);
  for (int r = 0; r < d.ranks; ++r)
    if (ownedRecords(d, r) == 0)
      invalid(
          "{} records in blocks of batch_size {} are not enough for {} ranks: rank {} would have none; use fewer ranks "
          "(clusterSize) or a "
          "smaller batch_size",
          d.records, d.batch, d.ranks, r);
}

}  // namespace crema
