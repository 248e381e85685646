// A LevelDB as numbered records: opening reads all of it once, in the order of its keys, and keeps of every record the
// block it lies in and its place there: 8 bytes, and 24 for each block. (A table's index has keys, no counts.) So
// damage is found before anything starts. Reading a record reads, checks and unpacks its block; the last few are kept.
// Nothing is locked or written: read-only folders and several readers are fine.
#include <algorithm>
#include <filesystem>
#include <list>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/mutex.h"
#include "data/leveldb_files.h"
#include "data/leveldb_logs.h"
#include "data/leveldb_source.h"

namespace crema::data {
namespace {

using namespace ldb;

constexpr uint32_t kInLog = UINT32_MAX;
struct Place {
  uint32_t block;  // or kInLog
  uint32_t entry;
};
struct BlockPlace {
  uint32_t file;
  Handle handle;
};

// Entries in the order of their keys, of one key the latest first.
class Run {
 public:
  virtual ~Run() = default;
  virtual bool next() = 0;
  std::string_view key;
  uint64_t tag = 0;  // sequence << 8 | kind
  Place place{};
  bool before(const Run& other) const { return key != other.key ? key < other.key : tag > other.tag; }
};

class TableRun : public Run {
 public:
  TableRun(const TableFiles& files, std::vector<uint32_t> tables, std::vector<BlockPlace>* blocks)
      : files_(files), tables_(std::move(tables)), all_(blocks) {}

  bool next() override {
    while (entry_ == block_.entries.size())
      if (!nextBlock()) return false;
    last_.assign(key), lastTag_ = tag;
    const std::string_view full = block_.key(block_.entries[entry_]);
    key = full.substr(0, full.size() - 8);
    tag = Fields(full.substr(full.size() - 8), file()).fixed(8);
    if (started_ && (key < last_ || (key == last_ && tag >= lastTag_)))
      damaged(file(), "its keys are not in order, or in two tables of one level");
    started_ = true;
    place = {number_, static_cast<uint32_t>(entry_++)};
    return true;
  }

 private:
  const std::string& file() const { return files_.path(tables_[table_]); }
  bool nextBlock() {
    while (handle_ == handles_.size()) {
      if (opened_ && ++table_ == tables_.size()) return false;
      opened_ = true;
      handles_ = files_.blocks(tables_[table_]), handle_ = 0;
    }
    kept_.assign(key);
    key = kept_;  // the block is freed now, so its key is copied
    number_ = static_cast<uint32_t>(all_->size());
    all_->push_back({tables_[table_], handles_[handle_]});
    block_ = files_.block(tables_[table_], handles_[handle_++]);
    entry_ = 0;
    return true;
  }

  const TableFiles& files_;
  std::vector<uint32_t> tables_;
  std::vector<BlockPlace>* all_;
  size_t table_ = 0, handle_ = 0, entry_ = 0;
  bool opened_ = false, started_ = false;
  uint32_t number_ = 0;  // of block_
  std::vector<Handle> handles_;
  Block block_;
  std::string last_, kept_;
  uint64_t lastTag_ = 0;
};

class LogRun : public Run {
 public:
  explicit LogRun(const Logs& logs) : logs_(logs) {}
  bool next() override {
    if (at_ == logs_.entries().size()) return false;
    const auto& entry = logs_.entries()[at_];
    key = entry.key, tag = entry.tag, place = {kInLog, static_cast<uint32_t>(at_++)};
    return true;
  }

 private:
  const Logs& logs_;
  size_t at_ = 0;
};

// The place of the latest state of every key that is not a removal.
std::vector<Place> merged(std::vector<std::unique_ptr<Run>> runs) {
  std::vector<Place> places;
  std::string last;
  bool any = false;
  std::erase_if(runs, [](auto& run) { return !run->next(); });
  while (!runs.empty()) {
    const auto run = std::min_element(runs.begin(), runs.end(), [](auto& a, auto& b) { return a->before(*b); });
    if (!any || (*run)->key != last) {
      last.assign((*run)->key), any = true;
      if ((*run)->tag & 1) places.push_back((*run)->place);
    }
    if (!(*run)->next()) runs.erase(run);
  }
  return places;
}

class LevelDbSource : public RecordSource {
 public:
  explicit LevelDbSource(const std::string& path) : path_(path) {
    const std::string current = readFile(joinPath(path, "CURRENT"));
    if (current.rfind("MANIFEST-", 0) != 0 || current.back() != '\n' || current.find('/') != std::string::npos)
      damaged(joinPath(path, "CURRENT"), "it does not name a manifest");
    const std::string manifest = joinPath(path, current.substr(0, current.size() - 1));
    if (!fileExists(manifest))
      badData("{} lacks {}, which its file CURRENT names; copy the whole folder anew", path,
              current.substr(0, current.size() - 1));
    const Tables tables = readManifest(manifest);
    readLogs(tables);
    places_ = merged(runs(tables));
    if (places_.empty()) badData("{} holds no records; was it written to the end?", path);
  }
  int64_t size() const override { return static_cast<int64_t>(places_.size()); }
  std::string describe() const override { return "LevelDB " + path_; }

  Record read(int64_t i) const override {
    const Place& place = places_[static_cast<size_t>(i)];
    if (place.block == kInLog) {
      const auto& entry = logs_.entries()[place.entry];
      const auto value = std::make_shared<const std::string>(logs_.value(entry));
      return {entry.key, *value, value};
    }
    const auto block = decoded(place.block);
    if (place.entry >= block->entries.size())
      damaged(files_.path(blocks_[place.block].file), "it was changed since it was opened");
    const auto& entry = block->entries[place.entry];
    const std::string_view key = block->key(entry);
    return {key.substr(0, key.size() - 8), block->value(entry), block};
  }

 private:
  void readLogs(const Tables& tables) {
    std::map<uint64_t, std::string> found;
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator(path_, failed)) {
      const std::string name = entry.path().filename();
      const size_t digits = name.find_first_not_of("0123456789");
      if (digits == 0 || digits > 19 || name.substr(std::min(digits, name.size())) != ".log") continue;
      const uint64_t number = std::stoull(name);
      if (number >= tables.log || number == tables.earlierLog) found[number] = entry.path();
    }
    if (failed) ioError("cannot list {}: {}; check that it may be read", path_, failed.message());
    for (const auto& [number, log] : found) logs_.add(log);
    logs_.sort();
  }

  // A table of level 0 may overlap any other; those of a deeper level follow each other.
  std::vector<std::unique_ptr<Run>> runs(const Tables& tables) {
    std::vector<std::unique_ptr<Run>> all;
    for (const auto& level : tables.levels) {
      std::vector<const Tables::Table*> order;
      for (const auto& [number, table] : level) order.push_back(&table);
      std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) { return a->smallest < b->smallest; });
      std::vector<uint32_t> files;
      for (const auto* table : order) files.push_back(files_.add(path_, table->number, table->bytes));
      const bool first = &level == &tables.levels[0];
      for (size_t i = 0; first && i < files.size(); ++i)
        all.push_back(std::make_unique<TableRun>(files_, std::vector{files[i]}, &blocks_));
      if (!first && !files.empty()) all.push_back(std::make_unique<TableRun>(files_, files, &blocks_));
    }
    all.push_back(std::make_unique<LogRun>(logs_));
    return all;
  }

  std::shared_ptr<const Block> decoded(uint32_t number) const {
    constexpr size_t kMostKept = 32;  // a rank reads one block after the other
    {
      const MutexLock lock(mutex_);
      const auto at = std::find_if(kept_.begin(), kept_.end(), [&](const auto& k) { return k.first == number; });
      if (at != kept_.end()) {
        kept_.splice(kept_.begin(), kept_, at);
        return at->second;
      }
    }
    const BlockPlace& place = blocks_[number];
    auto block = std::make_shared<const Block>(files_.block(place.file, place.handle));
    const MutexLock lock(mutex_);
    kept_.emplace_front(number, block);
    if (kept_.size() > kMostKept) kept_.pop_back();
    return block;
  }

  std::string path_;
  TableFiles files_;
  Logs logs_;
  std::vector<BlockPlace> blocks_;
  std::vector<Place> places_;
  mutable Mutex mutex_;
  mutable std::list<std::pair<uint32_t, std::shared_ptr<const Block>>> kept_
      CREMA_GUARDED_BY(mutex_);  // the last used first
};

}  // namespace

std::shared_ptr<const RecordSource> levelDbSource(const std::string& path) {
  if (!fileExists(path))
    ioError(
        "there is no LevelDB at {}; check `source`, or the path that was given (relative ones start at the working "
        "folder, else at the prototxt's)",
        path);
  if (!isDirectory(path) || fileExists(joinPath(path, "data.mdb")))
    invalid("{} is {}, and a LevelDB is wanted, as where no `backend` is written; say `backend: LMDB` in data_param",
            path, isDirectory(path) ? "an LMDB" : "a file");
  if (!fileExists(joinPath(path, "CURRENT")))
    badData("{} holds no file CURRENT, so it is no LevelDB; check `source`, or the path that was given", path);
  return std::make_shared<LevelDbSource>(path);
}

}  // namespace crema::data
