// make FOLDER MODE...: the records of the database FOLDER/MODE, and FOLDER/MODE.mean where it is, as lines: mode, key,
// bytes, 64-bit FNV-1a.
#include <caffe/caffe.hpp>
#include <caffe/util/db.hpp>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iterator>

static void line(const std::string& mode, const std::string& key, const std::string& bytes) {
  uint64_t hash = 14695981039346656037ull;
  for (unsigned char c : bytes) hash = (hash ^ c) * 1099511628211ull;
  std::printf("%s %s %zu %016" PRIx64 "\n", mode.c_str(), key.c_str(), bytes.size(), hash);
}

int main(int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    std::unique_ptr<caffe::db::DB> db(caffe::db::GetDB("lmdb"));
    db->Open(std::string(argv[1]) + "/" + argv[i], caffe::db::READ);
    std::unique_ptr<caffe::db::Cursor> cursor(db->NewCursor());
    for (; cursor->valid(); cursor->Next()) line(argv[i], cursor->key(), cursor->value());
    std::ifstream mean(std::string(argv[1]) + "/" + argv[i] + ".mean", std::ios::binary);
    if (mean) line(argv[i], "mean", {std::istreambuf_iterator<char>(mean), {}});
  }
}
