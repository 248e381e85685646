#include "data/lmdb_pages.h"

#include <cstring>

#include "base/error.h"

namespace crema {
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

class Walk {
 public:
  Walk(std::string_view bytes, const std::string& path) : b_(bytes), path_(path) {}

  std::vector<Record> run() {
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
    records_.reserve(m.entries);
    visit(m.root, 0);
    if (records_.size() != m.entries) damaged("its index promises {} records and has {}", m.entries, records_.size());
    return std::move(records_);
  }

 private:
  template <class... A>
  [[noreturn]] void damaged(fmt::format_string<A...> text, A&&... args) const {
    badData("{} is damaged: {}; copy or convert it again", path_, fmt::format(text, std::forward<A>(args)...));
  }

  Meta meta(uint64_t start) const {
    if (b_.size() < start + kHeader + kMeta)
      badData("{} has only {} bytes and is no LMDB; copy or convert it again", path_, b_.size());
    const uint64_t o = start + kHeader;
    if (at<uint32_t>(b_, o) != kMagic)
      badData("{} is no LMDB (its first bytes are something else); is it a LevelDB, or another kind of file?", path_);
    if (at<uint32_t>(b_, o + 4) != 1)
      badData("{} is an LMDB of format {}; format 1 is read here", path_, at<uint32_t>(b_, o + 4));
    Meta m;
    m.page = at<uint32_t>(b_, o + 24);
    if (m.page < 512 || m.page > 65536 || m.page & (m.page - 1)) damaged("it claims pages of {} bytes", m.page);
    const uint64_t tree = o + 72;  // the second of two: records
    m.flags = at<uint16_t>(b_, tree + 4);
    m.entries = at<uint64_t>(b_, tree + 32);
    m.root = at<uint64_t>(b_, tree + 40);
    m.lastPage = at<uint64_t>(b_, o + 120);
    m.transaction = at<uint64_t>(b_, o + 128);
    return m;
  }

  // Nodes of a page lie inside it; a page is visited once (a tree with a loop would not end), at most 64 deep.
  void visit(uint64_t number, int depth) {
    if (number < 2 || number >= pages_) damaged("a page {} is named, there are {}", number, pages_);
    if (++visited_ > pages_ || depth > 64) damaged("its pages form a circle");
    const std::string_view page = b_.substr(number * page_, page_);
    const auto flags = at<uint16_t>(page, 10), lower = at<uint16_t>(page, 12);
    if (at<uint64_t>(page, 0) != number || (flags != kBranch && flags != kLeaf) || lower < kHeader || lower > page_)
      damaged("page {} is no page of an index", number);
    for (uint64_t i = kHeader; i + 2 <= lower; i += 2) {
      const uint64_t node = at<uint16_t>(page, i);
      if (node < kHeader || node + kNodeHeader > page_) damaged("page {} points outside itself", number);
      const uint64_t low = at<uint16_t>(page, node) | static_cast<uint64_t>(at<uint16_t>(page, node + 2)) << 16;
      const auto nodeFlags = at<uint16_t>(page, node + 4);
      const uint64_t keySize = at<uint16_t>(page, node + 6), data = node + kNodeHeader + keySize;
      if (data > page_) damaged("page {} has a key that ends outside it", number);
      if (flags == kBranch) {
        visit(low | static_cast<uint64_t>(nodeFlags) << 32, depth + 1);
      } else {
        records_.push_back({page.substr(node + kNodeHeader, keySize), value(page, number, data, low, nodeFlags)});
      }
    }
  }

  std::string_view value(std::string_view page, uint64_t number, uint64_t data, uint64_t size, uint16_t flags) const {
    if (flags & ~kBigData) badData("{} holds named databases; Caffe's records are in the unnamed one", path_);
    if (!(flags & kBigData)) {
      if (size > page_ - data) damaged("page {} has a record that ends outside it", number);
      return page.substr(data, size);
    }
    if (page_ - data < 8) damaged("page {} has a record that ends outside it", number);
    const auto far = at<uint64_t>(page, data);
    if (far < 2 || far >= pages_ || at<uint16_t>(b_, far * page_ + 10) != kOverflow ||
        size > (pages_ - far) * page_ - kHeader)
      damaged("page {} has a record that lies outside the file", number);
    return b_.substr(far * page_ + kHeader, size);
  }

  std::string_view b_;
  const std::string& path_;
  uint64_t page_ = 0, pages_ = 0, visited_ = 0;
  std::vector<Record> records_;
};

}  // namespace

std::vector<Record> lmdbRecords(std::string_view bytes, const std::string& path) { return Walk(bytes, path).run(); }

}  // namespace crema
