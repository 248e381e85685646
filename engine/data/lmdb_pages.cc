#include "data/lmdb_pages.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace crema::data {
namespace {

constexpr uint32_t kMagic = 0xBEEFC0DE;
constexpr uint64_t kHeader = 16, kNodeHeader = 8, kMeta = 136, kNoPage = ~uint64_t{0};
constexpr uint16_t kBranch = 1, kLeaf = 2, kOverflow = 4, kBigData = 1, kManyValues = 4;

template <class T>
T at(std::string_view b, uint64_t offset) {  // the caller has checked the bounds
  T v;
  std::memcpy(&v, b.data() + offset, sizeof v);
  return v;
}

struct Meta {
  uint64_t page = 0, lastPage = 0, transaction = 0, entries = 0, root = kNoPage;
  uint16_t flags = 0;
};

// Reads pages, and throws kData with a description of any damage.
class Checked {
 public:
  Checked(const FileBytes& bytes, const std::string& path) : b_(bytes), path_(path) {}

 protected:
  template <class... A>
  [[noreturn]] void damaged(fmt::format_string<A...> text, A&&... args) const {
    badData("{} is damaged: {}; copy or convert it again", path_, fmt::format(text, std::forward<A>(args)...));
  }

  struct Node {
    std::string_view key;
    uint64_t low, data;  // data: offset in the page
    uint16_t flags;
  };

  // A branch or leaf page, after checking its header and that all nodes lie inside it.
  std::string_view page(uint64_t number) const {
    if (number < 2 || number >= pages_) damaged("a page {} is named, there are {}", number, pages_);
    const std::string_view page = b_.range(number * page_, page_);
    const auto flags = at<uint16_t>(page, 10), lower = at<uint16_t>(page, 12);
    if (at<uint64_t>(page, 0) != number || (flags != kBranch && flags != kLeaf) || lower < kHeader || lower > page_)
      damaged("page {} is no page of an index", number);
    return page;
  }
  static uint64_t nodes(std::string_view page) { return (at<uint16_t>(page, 12) - kHeader) / 2; }
  static bool isLeaf(std::string_view page) { return at<uint16_t>(page, 10) == kLeaf; }

  Node node(std::string_view page, uint64_t number, uint64_t i) const {
    const uint64_t place = at<uint16_t>(page, kHeader + 2 * i);
    if (place < kHeader || place + kNodeHeader > page_) damaged("page {} points outside itself", number);
    Node n;
    n.low = at<uint16_t>(page, place) | static_cast<uint64_t>(at<uint16_t>(page, place + 2)) << 16;
    n.flags = at<uint16_t>(page, place + 4);
    const uint64_t keySize = at<uint16_t>(page, place + 6);
    n.data = place + kNodeHeader + keySize;
    if (n.data > page_) damaged("page {} has a key that ends outside it", number);
    n.key = page.substr(place + kNodeHeader, keySize);
    return n;
  }

  // Checks that a leaf's value lies in the page, or in overflow pages inside the file.
  void checkValue(const Node& n, uint64_t number, std::string_view page) const {
    if (n.flags & ~kBigData) badData("{} holds named databases; Caffe's records are in the unnamed one", path_);
    const bool big = n.flags & kBigData;
    if (page_ - n.data < (big ? 8 : n.low)) damaged("page {} has a record that ends outside it", number);
    if (!big) return;
    const auto far = at<uint64_t>(page, n.data);
    if (far < 2 || far >= pages_ || n.low > (pages_ - far) * page_ - kHeader)
      damaged("page {} has a record that lies outside the file", number);
  }

  const FileBytes& b_;
  const std::string& path_;
  uint64_t page_ = 0, pages_ = 0;
};

class Walk : Checked {
 public:
  using Checked::Checked;

  LmdbIndex run() {
    const Meta first = meta(0), second = meta(first.page);
    const Meta& m = second.transaction >= first.transaction ? second : first;
    page_ = m.page;
    if (m.lastPage >= b_.size() / page_)
      badData(
          "{} is truncated: it has {} bytes and its index promises {} pages of {}; the copy was cut short, copy it "
          "again",
          path_, b_.size(), m.lastPage + 1, page_);
    pages_ = m.lastPage + 1;
    if (m.flags & kManyValues) badData("{} holds several values per key; Caffe's records have one", path_);
    if (m.entries == 0 || m.root == kNoPage) badData("{} holds no records; was its conversion interrupted?", path_);
    if (m.entries > b_.size() / kNodeHeader) damaged("it claims {} records", m.entries);
    index_.pageSize = page_, index_.pages = pages_;
    index_.first = {0};
    visit(m.root, 0);
    if (static_cast<uint64_t>(index_.records()) != m.entries)
      damaged("its index promises {} records and has {}", m.entries, index_.records());
    return std::move(index_);
  }

 private:
  Meta meta(uint64_t start) const {
    if (b_.size() < start + kHeader + kMeta)
      badData("{} has only {} bytes and is no LMDB; copy or convert it again", path_, b_.size());
    const std::string_view o = b_.range(start + kHeader, kMeta);
    if (start > 0 && at<uint32_t>(o, 0) != kMagic) damaged("the second of its two headers begins with other bytes");
    if (at<uint32_t>(o, 0) != kMagic)
      badData("{} is no LMDB (its first bytes are something else); is it a LevelDB, or another kind of file?", path_);
    if (at<uint32_t>(o, 4) != 1)
      badData("{} is an LMDB of format {}; format 1 is read here", path_, at<uint32_t>(o, 4));
    Meta m;
    m.page = at<uint32_t>(o, 24);
    if (m.page < 512 || m.page > 65536 || m.page & (m.page - 1)) damaged("it claims pages of {} bytes", m.page);
    constexpr uint64_t kRecords = 72;  // offset of the tree of records, the second of two
    m.flags = at<uint16_t>(o, kRecords + 4);
    m.entries = at<uint64_t>(o, kRecords + 32);
    m.root = at<uint64_t>(o, kRecords + 40);
    m.lastPage = at<uint64_t>(o, 120);
    m.transaction = at<uint64_t>(o, 128);
    return m;
  }

  // Visits every page once, so that a loop in a damaged tree ends, and at most 64 levels deep.
  void visit(uint64_t number, int depth) {
    if (++visited_ > pages_ || depth > 64) damaged("its pages form a circle");
    const std::string_view p = page(number);
    const uint64_t count = nodes(p);
    for (uint64_t i = 0; i < count; ++i) {
      const Node n = node(p, number, i);
      if (isLeaf(p))
        checkValue(n, number, p);
      else
        visit(n.low | static_cast<uint64_t>(n.flags) << 32, depth + 1);
    }
    if (!isLeaf(p)) return;
    index_.leaf.push_back(number);
    index_.first.push_back(index_.records() + static_cast<int64_t>(count));
  }

  uint64_t visited_ = 0;
  LmdbIndex index_;
};

class Reading : Checked {
 public:
  Reading(const FileBytes& bytes, const LmdbIndex& index, const std::string& path)
      : Checked(bytes, path), index_(index) {
    page_ = index.pageSize, pages_ = index.pages;
    if (page_ < 512 || pages_ > b_.size() / page_) damaged("it is shorter than its index says");
  }

  Record record(int64_t number) const {
    const auto after = std::upper_bound(index_.first.begin(), index_.first.end(), number);
    const auto i = static_cast<size_t>(after - index_.first.begin()) - 1;
    const uint64_t leaf = index_.leaf[i];
    const std::string_view p = page(leaf);
    const auto k = static_cast<uint64_t>(number - index_.first[i]);
    if (!isLeaf(p) || k >= nodes(p)) damaged("page {} has changed since its index was read", leaf);
    const Node n = node(p, leaf, k);
    checkValue(n, leaf, p);
    return {n.key, n.flags & kBigData ? overflow(at<uint64_t>(p, n.data), n.low) : p.substr(n.data, n.low)};
  }

 private:
  std::string_view overflow(uint64_t number, uint64_t size) const {
    const std::string_view all = b_.range(number * page_, kHeader + size);
    if (at<uint64_t>(all, 0) != number || at<uint16_t>(all, 10) != kOverflow)
      damaged("page {} is not the record that its index says", number);
    return all.substr(kHeader);
  }

  const LmdbIndex& index_;
};

}  // namespace

LmdbIndex lmdbIndex(const FileBytes& bytes, const std::string& path) { return Walk(bytes, path).run(); }

Record lmdbRecord(const FileBytes& bytes, const LmdbIndex& index, int64_t number, const std::string& path) {
  return Reading(bytes, index, path).record(number);
}

}  // namespace crema::data
