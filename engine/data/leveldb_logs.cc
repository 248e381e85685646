#include "data/leveldb_logs.h"

#include <algorithm>
#include <filesystem>

#include "base/log.h"

namespace crema::data::ldb {
namespace {

// One batch: its small parts are copied, its values are passed over.
class Cursor {
 public:
  Cursor(std::string_view file, LogSpan span, const std::string& path) : file_(file), left_(span), path_(path) {}
  bool done() const { return left_.bytes == 0; }
  LogSpan skip(uint64_t n) {
    if (n > left_.bytes) damaged(path_, "{} more bytes are announced where {} are left", n, left_.bytes);
    const LogSpan span{left_.at, n};
    left_ = {logAdvance(left_.at, n), left_.bytes - n};
    return span;
  }
  std::string take(uint64_t n) { return logBytes(file_, skip(n)); }
  uint64_t varint() {
    std::string bytes;
    do bytes += take(1);
    while (static_cast<uint8_t>(bytes.back()) > 127 && bytes.size() < 10);
    return Fields(bytes, path_).varint();
  }

 private:
  std::string_view file_;
  LogSpan left_;
  const std::string& path_;
};

}  // namespace

void Logs::add(const std::string& path) {
  std::error_code failed;
  if (std::filesystem::file_size(path, failed) == 0 && !failed) return;
  files_.push_back(std::make_unique<MappedFile>(path));
  const std::string_view file = files_.back()->bytes();
  uint64_t torn = 0;
  for (const LogSpan& record : logRecords(file, path, &torn)) addBatch(file, record, path);
  if (torn)
    LOG_WARNING("{} ends inside a record: its last {} bytes were never written whole and are left out, as LevelDB does",
                path, torn);
}

void Logs::sort() {
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.key != b.key ? a.key < b.key : a.tag > b.tag; });
}

std::string Logs::value(const Entry& e) const {
  files_[e.file]->touched(e.value.bytes);
  return logBytes(files_[e.file]->bytes(), e.value);
}

void Logs::addBatch(std::string_view file, LogSpan record, const std::string& path) {
  Cursor in(file, record, path);
  const std::string head = in.take(12);
  Fields fields(head, path);
  uint64_t sequence = fields.fixed(8), count = fields.fixed(4);
  for (; !in.done(); ++sequence, --count) {
    const auto kind = static_cast<uint8_t>(in.take(1)[0]);
    if (kind > 1 || count == 0) damaged(path, "a batch holds something else than it says");
    std::string key = in.take(in.varint());
    const LogSpan value = kind == 1 ? in.skip(in.varint()) : LogSpan{0, 0};
    entries_.push_back({std::move(key), sequence << 8 | kind, static_cast<uint32_t>(files_.size() - 1), value});
  }
  if (count) damaged(path, "a batch lacks {} records", count);
}

}  // namespace crema::data::ldb
