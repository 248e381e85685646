// The records of an LMDB file, found by walking its tree with every offset checked. liblmdb does not check its file: a
// damaged page crashes the process (4 of 14 files with a few changed bytes did). Reading needs only a small part of the
// format, so it is done here; liblmdb does the writing.
//
// Layout (format version 1, 64 bits, little endian). Page: number u64, pad u16, flags u16 (1 branch, 2 leaf, 4
// overflow), then lower u16, upper u16 (branch, leaf) or pages u32 (overflow); 16 bytes. Branch and leaf pages go on
// with (lower - 16) / 2 offsets u16 of their nodes. Node: lo u16, hi u16, flags u16, key size u16, key, data. In a
// branch lo | hi << 16 | flags << 32 is the page below; in a leaf lo | hi << 16 is the data's size, and with flag 1 the
// data is the number u64 of the first of enough overflow pages. Pages 0 and 1 hold, behind their headers: magic u32,
// version u32, address u64, map size u64, two trees (free pages, records), last page u64, transaction u64; the higher
// transaction is valid. Tree: page size u32, flags u16, depth u16, counts of branch, leaf, overflow pages and entries
// u64 each, root u64.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/file_bytes.h"
#include "data/source.h"

namespace crema::data {

// For each leaf page, in key order: its page number and the number of its first record. 16 bytes per leaf page, which
// holds a few small records, or some hundred whose values lie in overflow pages.
struct LmdbIndex {
  uint64_t pageSize = 0, pages = 0;
  std::vector<uint64_t> leaf;
  std::vector<int64_t> first;  // one more than leaves: the last entry is the number of records
  int64_t records() const { return first.empty() ? 0 : first.back(); }
};

// Reads every page of the index once, and checks all of it. kData, naming `path`, what is wrong and the remedy.
LmdbIndex lmdbIndex(const FileBytes& bytes, const std::string& path);

// Record `number` (0 <= number < records()). Reads and checks its leaf page and overflow pages, since the index may
// have been made by another process.
Record lmdbRecord(const FileBytes& bytes, const LmdbIndex& index, int64_t number, const std::string& path);

// Both as a source; `path` is for messages.
std::shared_ptr<const RecordSource> lmdbSource(std::shared_ptr<const FileBytes> file, LmdbIndex index,
                                               const std::string& path);
std::shared_ptr<const RecordSource> lmdbSource(const std::string& path);  // a folder with data.mdb, or such a file

}  // namespace crema::data
