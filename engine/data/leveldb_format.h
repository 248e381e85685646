// What a LevelDB's files hold, with every offset and checksum checked. libleveldb wants to lock and to write where it
// reads (it turns its log into a table when it opens), and trusts parts of its files; so reading is ours, as LMDB's is,
// and writing is libleveldb's.
//
// Layout (little endian). CURRENT names the manifest. Manifest and logs are blocks of 32 KiB of fragments: masked
// CRC-32C u32 of what follows the size, size u16, kind u8 (1 whole, 2 first, 3 middle, 4 last), bytes; a fragment that
// is not the last of its record ends its block, and fewer than 7 bytes at a block's end are zeros. A manifest's record
// is a list of varint tags: 1 comparator, 2 log, 3 next file, 4 last sequence, 5 compaction pointer, 6 table removed
// (level, number), 7 table added (level, number, size, smallest key, largest key), 9 earlier log. A log's record:
// sequence u64, count u32, entries (kind u8: 0 removed, 1 put; key; value). Table: blocks, each followed by its
// compression (0 none, 1 snappy) and the masked CRC-32C of both; last 48 bytes: handles (offset, size) of two blocks,
// of which the second is the index, and a magic number. Block: entries (shared, own and value size as varints, the
// key's own bytes, value), u32 offsets of restarts, their count u32. Keys of tables end in sequence << 8 | kind, u64.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace crema::data::ldb {

template <class... A>
[[noreturn]] void damaged(const std::string& file, fmt::format_string<A...> text, A&&... args) {
  badData("{} is damaged: {}; copy the database anew, or make it again", file,
          fmt::format(text, std::forward<A>(args)...));
}

uint32_t crc32c(std::string_view bytes);  // Castagnoli's polynomial, by the processor's own instruction
inline uint32_t masked(uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

// Reads numbers and texts in sequence; throws kData, naming the file, when the bytes end too soon.
class Fields {
 public:
  Fields(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}
  bool done() const { return bytes_.empty(); }
  std::string_view take(uint64_t n);
  uint64_t varint();
  std::string_view text() { return take(varint()); }  // a varint size, then the bytes
  uint64_t fixed(size_t n);

 private:
  std::string_view bytes_;
  const std::string& file_;
};

// Where the bytes of a log's record are: fragments are consecutive, so a position and a count are enough.
struct LogSpan {
  uint64_t at, bytes;
};
constexpr uint64_t kLogBlock = 32768, kLogHeader = 7;

// The records of a manifest or log, all checksums checked. A record that the file's end cuts off was never finished:
// libleveldb drops it as well; `*torn` is then its bytes, else 0.
std::vector<LogSpan> logRecords(std::string_view file, const std::string& name, uint64_t* torn);
uint64_t logAdvance(uint64_t at, uint64_t n);  // n bytes of a record further, headers passed over
std::string logBytes(std::string_view file, LogSpan span);

// The state that a manifest leads to.
struct Tables {
  struct Table {
    uint64_t number, bytes;
    std::string smallest;
  };
  std::map<uint64_t, Table> levels[7];  // by number
  uint64_t log = 0, earlierLog = 0;
  int said = 0;  // 1 log, 2 next file, 4 last sequence
};
Tables readManifest(const std::string& path);

struct Handle {
  uint64_t offset, bytes;
};
inline constexpr uint64_t kTrailer = 5, kFooter = 48;

// A decoded block: its entries' keys and values. Immutable.
struct Block {
  struct Entry {
    uint64_t keyAt;
    uint32_t keyBytes, valueAt, valueBytes;
  };
  std::string bytes, keys;
  std::vector<Entry> entries;
  std::string_view key(const Entry& e) const { return std::string_view(keys).substr(e.keyAt, e.keyBytes); }
  std::string_view value(const Entry& e) const { return std::string_view(bytes).substr(e.valueAt, e.valueBytes); }
};
Block decodeBlock(std::string stored, const std::string& file);  // stored: with its trailer
Handle indexHandle(std::string_view footer, uint64_t fileBytes, const std::string& file);
Handle blockHandle(std::string_view encoded, uint64_t fileBytes, const std::string& file);

}  // namespace crema::data::ldb
