#include "data/lmdb_writer.h"

#include <lmdb.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary.h"

namespace crema::data {

struct LmdbWriter::State {
  static constexpr size_t kCommitEvery = 1000, kFirstMap = size_t{64} << 20;
  explicit State(const std::string& to) : path(to), part(to) {}
  std::string path;
  PartFolder part;
  MDB_env* env = nullptr;
  size_t mapSize = kFirstMap;
  std::vector<std::pair<std::string, std::string>> waiting;
  int64_t written = 0;

  void check(int code, const char* what) const {
    if (code == MDB_SUCCESS) return;
    ioError("cannot {} LMDB {}: {}{}", what, path, mdb_strerror(code),
            code == ENOSPC || code == EIO ? "; is the disk full? Free some space or choose another one" : "");
  }

  // Writes all pending records in one transaction; when the map is full, doubles it and repeats the transaction.
  void commit() {
    if (waiting.empty()) return;
    for (;;) {
      const int code = tryCommit();
      if (code == MDB_SUCCESS) break;
      if (code != MDB_MAP_FULL) check(code, "write");
      mapSize *= 2;
      check(mdb_env_set_mapsize(env, mapSize), "grow");
    }
    written += static_cast<int64_t>(waiting.size());
    waiting.clear();
  }

  int tryCommit() {
    MDB_txn* txn = nullptr;
    int code = mdb_txn_begin(env, nullptr, 0, &txn);
    if (code != MDB_SUCCESS) return code;
    MDB_dbi dbi = 0;
    code = mdb_dbi_open(txn, nullptr, 0, &dbi);
    for (size_t i = 0; code == MDB_SUCCESS && i < waiting.size(); ++i) {
      MDB_val key{waiting[i].first.size(), waiting[i].first.data()},
          value{waiting[i].second.size(), waiting[i].second.data()};
      code = mdb_put(txn, dbi, &key, &value, 0);
    }
    if (code == MDB_SUCCESS) return mdb_txn_commit(txn);
    mdb_txn_abort(txn);
    return code;
  }
};

LmdbWriter::LmdbWriter(const std::string& path) {
  state_ = std::make_unique<State>(path);
  state_->check(mdb_env_create(&state_->env), "create");
  state_->check(mdb_env_set_mapsize(state_->env, state_->mapSize), "create");
  state_->check(mdb_env_open(state_->env, state_->part.name().c_str(), 0, 0664), "create");
}

LmdbWriter::~LmdbWriter() {
  if (state_->env) mdb_env_close(state_->env);
}

void LmdbWriter::put(std::string_view key, std::string_view value) {
  state_->waiting.emplace_back(key, value);
  if (state_->waiting.size() >= State::kCommitEvery) state_->commit();
}

void LmdbWriter::finish() {
  state_->commit();
  state_->check(mdb_env_sync(state_->env, 1), "flush");
  mdb_env_close(std::exchange(state_->env, nullptr));
  state_->part.finish("LMDB");
}

int64_t LmdbWriter::written() const { return state_->written + static_cast<int64_t>(state_->waiting.size()); }

}  // namespace crema::data
