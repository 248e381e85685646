#include "data/shard.h"

#include "base/error.h"

namespace crema::data {

int64_t ownedRecords(const Sharding& d, int rank) {
  const int64_t block = d.block(), full = d.records / block, rest = d.records % block;
  int64_t own = (full / d.ranks + (rank < full % d.ranks ? 1 : 0)) * block;
  if (rest && full % d.ranks == rank) own += rest;  // the short last block
  return own;
}

int64_t recordIndex(const Sharding& d, int rank, int64_t position) {
  const int64_t p = position % ownedRecords(d, rank), block = d.block();
  return (p / block * d.ranks + rank) * block + p % block;  // only the very last block is short
}

int64_t TestSharding::after(int64_t g) const {
  if (!cycle) return g + workers;
  const int64_t at = g % cycle;
  return at + workers < cycle ? g + workers : g - at + cycle + at % workers;
}

void checkSharding(const Sharding& d) {
  if (d.batch <= 0) invalid("batch_size must be positive, not {}", d.batch);
  if (d.records < d.ranks)
    invalid(
        "Insufficient training data. Please adjust hyperparameters or increase dataset. ({} records for {} ranks; "
        "every rank, "
        "clusterSize x devices, needs one)",
        d.records, d.ranks);
}

}  // namespace crema::data
