#include "data/leveldb_format.h"

#include <nmmintrin.h>
#include <snappy.h>

#include <cstring>

#include "base/file.h"

namespace crema::data::ldb {
namespace {

template <class T>
T at(std::string_view bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

__attribute__((target("sse4.2"))) uint32_t crc32c(std::string_view bytes) {
  uint64_t crc = 0xffffffff;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) crc = _mm_crc32_u64(crc, at<uint64_t>(bytes, i));
  for (; i < bytes.size(); ++i) crc = _mm_crc32_u8(static_cast<uint32_t>(crc), static_cast<uint8_t>(bytes[i]));
  return static_cast<uint32_t>(crc) ^ 0xffffffff;
}

std::string_view Fields::take(uint64_t n) {
  if (n > bytes_.size()) damaged(file_, "{} more bytes are announced where {} are left", n, bytes_.size());
  const std::string_view taken = bytes_.substr(0, n);
  bytes_.remove_prefix(n);
  return taken;
}

uint64_t Fields::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<uint8_t>(take(1)[0]);
    value |= uint64_t{byte & 127u} << shift;
    if (byte < 128) return value;
  }
  damaged(file_, "a number in it does not end");
}

uint64_t Fields::fixed(size_t n) {
  uint64_t value = 0;
  std::memcpy(&value, take(n).data(), n);
  return value;
}

std::vector<LogSpan> logRecords(std::string_view file, const std::string& name, uint64_t* torn) {
  enum Kind : uint8_t { kNone, kWhole, kFirst, kMiddle, kLast };
  std::vector<LogSpan> records;
  LogSpan open{0, 0};
  bool inside = false;
  uint64_t at = 0;
  for (*torn = 0; at < file.size();) {
    const uint64_t room = kLogBlock - at % kLogBlock;
    if (room < kLogHeader) {
      at += room;
      continue;
    }
    if (at + kLogHeader > file.size()) break;
    const uint64_t bytes = ldb::at<uint16_t>(file, at + 4);
    const auto kind = static_cast<uint8_t>(file[at + 6]);
    if (kind == kNone && bytes == 0) {  // space that was set aside and never written
      at += room;
      continue;
    }
    if (kLogHeader + bytes > room) damaged(name, "the fragment at byte {} is longer than its block", at);
    if (at + kLogHeader + bytes > file.size()) break;
    if (ldb::at<uint32_t>(file, at) != masked(crc32c(file.substr(at + 6, 1 + bytes))))
      damaged(name, "the checksum of the fragment at byte {} is wrong", at);
    const bool begins = kind == kWhole || kind == kFirst, ends = kind == kWhole || kind == kLast;
    if (kind > kLast || begins == inside || (!ends && kLogHeader + bytes != room))
      damaged(name, "the fragment at byte {} does not continue the one before it", at);
    if (begins) open = {at + kLogHeader, 0};
    open.bytes += bytes;
    inside = !ends;
    if (ends) records.push_back(open);
    at += kLogHeader + bytes;
  }
  if (inside || at < file.size()) *torn = file.size() - (inside ? open.at - kLogHeader : at);
  return records;
}

uint64_t logAdvance(uint64_t at, uint64_t n) {
  for (;;) {
    if (at % kLogBlock == 0 && n > 0) at += kLogHeader;
    const uint64_t room = kLogBlock - at % kLogBlock;
    if (n <= room) return at + n;
    at += room, n -= room;
  }
}

std::string logBytes(std::string_view file, LogSpan span) {
  std::string bytes;
  bytes.reserve(span.bytes);
  for (uint64_t at = span.at; bytes.size() < span.bytes;) {
    if (at % kLogBlock == 0) at += kLogHeader;
    const uint64_t n = std::min(span.bytes - bytes.size(), kLogBlock - at % kLogBlock);
    if (at + n > file.size()) internal("a log's span ends behind the file");
    bytes.append(file.substr(at, n));
    at += n;
  }
  return bytes;
}

namespace {

void applyEdit(Fields edit, const std::string& path, Tables* tables) {
  const auto level = [&] {
    const uint64_t l = edit.varint();
    if (l >= std::size(tables->levels)) damaged(path, "it names level {}, of 7", l);
    return &tables->levels[l];
  };
  while (!edit.done()) switch (const uint64_t tag = edit.varint()) {
      case 1:
        if (const auto name = edit.text(); name != "leveldb.BytewiseComparator")
          badData("{} orders its keys by '{}'; only LevelDB's own order of bytes is read, as Caffe writes it", path,
                  name);
        break;
      case 2:
        tables->log = edit.varint(), tables->said |= 1;
        break;
      case 3:
      case 4:
        edit.varint(), tables->said |= tag == 3 ? 2 : 4;
        break;
      case 5:
        level(), edit.text();
        break;
      case 6: {
        auto* of = level();
        of->erase(edit.varint());
        break;
      }
      case 7: {
        auto* of = level();
        const uint64_t number = edit.varint(), bytes = edit.varint();
        (*of)[number] = {number, bytes, std::string(edit.text())};
        edit.text();
        break;
      }
      case 9:
        tables->earlierLog = edit.varint();
        break;
      default:
        damaged(path, "it has a field of kind {}, which no LevelDB writes", tag);
    }
}

}  // namespace

Tables readManifest(const std::string& path) {
  const std::string file = readFile(path);
  Tables tables;
  uint64_t torn = 0;
  const auto records = logRecords(file, path, &torn);
  if (torn) damaged(path, "it ends inside a record");
  if (records.empty()) damaged(path, "it holds nothing");
  for (const LogSpan& span : records) {
    const std::string edit = logBytes(file, span);
    applyEdit(Fields(edit, path), path, &tables);
  }
  if (tables.said != 7) damaged(path, "it lacks the numbers that every manifest has");
  return tables;
}

namespace {

std::string unpacked(std::string stored, const std::string& file) {
  if (stored.size() < kTrailer) damaged(file, "a block has no checksum");
  const size_t bytes = stored.size() - kTrailer;
  if (at<uint32_t>(stored, bytes + 1) != masked(crc32c(std::string_view(stored).substr(0, bytes + 1))))
    damaged(file, "the checksum of a block of {} bytes is wrong", bytes);
  const char compression = stored[bytes];
  stored.resize(bytes);
  if (compression == 0) return stored;
  if (compression != 1)
    badData(
        "{} is compressed in a way (number {}) that is not read; write the database with snappy or uncompressed, as "
        "Caffe does",
        file, static_cast<int>(compression));
  size_t becomes = 0;
  if (!snappy::GetUncompressedLength(stored.data(), stored.size(), &becomes) || becomes > 64 * stored.size() + 64)
    damaged(file, "a compressed block has no size");
  std::string plain(becomes, '\0');
  if (!snappy::RawUncompress(stored.data(), stored.size(), plain.data()))
    damaged(file, "a block of {} bytes cannot be decompressed", bytes);
  return plain;
}

}  // namespace

Block decodeBlock(std::string stored, const std::string& file) {
  constexpr uint64_t kMostKeys = uint64_t{1} << 28, kMostBytes = uint64_t{1} << 32;
  Block block;
  block.bytes = unpacked(std::move(stored), file);
  const std::string_view all = block.bytes;
  const uint64_t restarts = all.size() >= 4 ? at<uint32_t>(all, all.size() - 4) : UINT32_MAX;
  if (4 * (restarts + 1) > all.size() || all.size() >= kMostBytes)
    damaged(file, "a block's table does not fit into it");
  const std::string_view entries = all.substr(0, all.size() - 4 * (restarts + 1));
  Fields in(entries, file);
  std::string key;
  while (!in.done()) {
    const uint64_t shared = in.varint(), own = in.varint(), value = in.varint();
    if (shared > key.size()) damaged(file, "a key continues {} bytes of one that has {}", shared, key.size());
    key.resize(shared);
    key += in.take(own);
    if (key.size() < 8) damaged(file, "a key has {} bytes, fewer than its number takes", key.size());
    const std::string_view data = in.take(value);
    block.entries.push_back({block.keys.size(), static_cast<uint32_t>(key.size()),
                             static_cast<uint32_t>(data.data() - all.data()), static_cast<uint32_t>(value)});
    block.keys += key;
    if (block.keys.size() > kMostKeys) damaged(file, "the keys of one block take more than {} MiB", kMostKeys >> 20);
  }
  return block;
}

Handle blockHandle(std::string_view encoded, uint64_t fileBytes, const std::string& file) {
  Fields in(encoded, file);
  const uint64_t offset = in.varint(), bytes = in.varint();
  if (offset > fileBytes || bytes > fileBytes || offset + bytes + kTrailer > fileBytes)
    damaged(file, "it has {} bytes, and a block of {} at {}", fileBytes, bytes, offset);
  return {offset, bytes};
}

Handle indexHandle(std::string_view footer, uint64_t fileBytes, const std::string& file) {
  constexpr uint64_t kMagic = 0xdb4775248b80fb57;
  if (footer.size() != kFooter || at<uint64_t>(footer, kFooter - 8) != kMagic)
    damaged(file, "it does not end as a table of LevelDB");
  Fields in(footer, file);
  in.varint(), in.varint();
  const uint64_t offset = in.varint(), bytes = in.varint();
  if (offset > fileBytes || bytes > fileBytes || offset + bytes + kTrailer + kFooter > fileBytes)
    damaged(file, "its index of {} bytes at {} does not fit into {} bytes", bytes, offset, fileBytes);
  return {offset, bytes};
}

}  // namespace crema::data::ldb
