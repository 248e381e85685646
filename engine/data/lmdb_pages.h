// The records of an LMDB file, found by walking its tree with every offset checked. liblmdb trusts its file: a damaged
// page ends the process (4 of 14 files with a few changed bytes did). Reading needs little of it, so reading is ours;
// writing is liblmdb's.
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
#include <string>
#include <string_view>
#include <vector>

#include "data/source.h"

namespace crema {

// In key order; views into `bytes`. kData, naming `path`, what is wrong and the remedy. Cost: every leaf page once.
std::vector<Record> lmdbRecords(std::string_view bytes, const std::string& path);

}  // namespace crema
