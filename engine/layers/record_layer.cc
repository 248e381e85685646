#include "layers/record_layer.h"

#include <algorithm>
#include <climits>
#include <limits>

#include "base/file.h"
#include "base/file_sum.h"
#include "base/packet_sum.h"
#include "base/text.h"

namespace crema::layers {
namespace {

template <class T>
void copy(const std::vector<float>& from, int n, bool transpose, T* to) {
  if (!transpose || n == 0) {
    std::copy(from.begin(), from.end(), to);
    return;
  }
  const size_t rows = static_cast<size_t>(n), width = from.size() / rows;
  for (size_t i = 0; i < rows; ++i)
    for (size_t k = 0; k < width; ++k) to[k * rows + i] = static_cast<T>(from[i * width + k]);
}

}  // namespace

std::string RecordLayer::recordOf(int item) const {
  if (!current_ || static_cast<size_t>(item) >= current_->records.size()) return "";
  const int64_t number = current_->records[static_cast<size_t>(item)];
  const data::Record record = maker_.source->read(number);
  const std::string key = printable(record.key.substr(0, 60));
  return fmt::format("record {}{} of {}", number, key.empty() ? "" : " (" + key + ")", maker_.source->describe());
}

RecordLayer::Identity RecordLayer::identity(const data::Record& r) const {
  const uint64_t sum = packetSum(r.value.data(), r.value.size(), packetSum(r.key.data(), r.key.size(), 0));
  return {sum, static_cast<int64_t>(r.key.size() + r.value.size())};
}

std::string RecordLayer::sumOfRecords(int64_t whole) const {
  constexpr int64_t kLeast = 64, kSome = int64_t{16} << 20;
  const int64_t size = maker_.source->size();
  uint64_t sum = 0;
  const auto spread = [&](int64_t count) {
    int64_t bytes = 0;
    for (int64_t k = 0; k < count; ++k) {
      const Identity one = identity(maker_.source->read(count > 1 ? (size - 1) * k / (count - 1) : 0));
      sum = packetSum(&one.sum, sizeof one.sum, sum), bytes += one.bytes;
    }
    return bytes;
  };
  if (size == 0) return "0";
  const int64_t each = std::max<int64_t>(1, spread(kLeast) / kLeast);
  if (const int64_t count = size <= whole / each ? size : std::min(size, kSome / each); count > kLeast) spread(count);
  return fmt::format("{:016x}", sum);
}

// Of a mean_file each machine reads its own, too.
std::string RecordLayer::sumOfMeans() const {
  std::vector<std::string> files{param_.transform_param().mean_file()};
  for (const auto& top : param_.cos_data_param().top()) files.push_back(top.transform_param().mean_file());
  std::string all;
  for (const std::string& file : files) {
    const std::string path = resolvePath(file, context().data->folder);
    if (file.empty() || !fileExists(path)) continue;
    all += fmt::format(", mean {:016x}", fileSum(path));
  }
  return all;
}

const std::string& RecordLayer::fingerprint() const {
  if (!maker_.source || !fingerprint_.empty()) return fingerprint_;
  constexpr int64_t kWhole = int64_t{64} << 20;
  fingerprint_ = fmt::format("{} records{}{}", maker_.source->size(),
                             readsHere() ? ", fingerprint " + sumOfRecords(kWhole) : "", sumOfMeans());
  return fingerprint_;
}

std::string RecordLayer::comparison() const {
  const std::string& some = fingerprint();
  if (some.empty() || !readsHere() || !context().data->compareAll) return some;
  return fmt::format("{}, of all {}", some, sumOfRecords(std::numeric_limits<int64_t>::max()));
}

void RecordLayer::setBatch(int64_t size) {
  if (size <= 0 || size > INT_MAX) invalid("batch_size must be given, positive and below 2^31");
  batch_ = static_cast<int>(size);
}

std::string RecordLayer::sourcePath(const std::string& written, const char* missing) const {
  const std::string& path = context().data->pathOr(written);
  if (path.empty()) invalid("{}", missing);
  return resolvePath(path, context().data->folder);
}

std::string RecordLayer::databasePath(const std::string& written) const {
  return resolvePath(localPath(context().data->pathOr(written)), context().data->folder);
}

void RecordLayer::begin(const Blobs& top) {
  const DataOptions& o = *context().data;
  if (maker_.source) {
    data::FeedOptions& f = maker_.options;
    f.batch = batch_;
    f.prefetch = prefetch();
    f.seed = context().run->seed;
    f.layer = randomName();
    f.ranks = o.ranks, f.myRanks = o.myRanks, f.stepsPerRank = o.stepsPerRank;
    f.test = context().phase == caffe::TEST, f.workers = o.testWorkers;
    if (!scoring()) feed_ = std::make_unique<data::BatchFeed>(maker_);
  }
  std::vector<Shape> shapes;
  for (size_t t = 0; t < top.size(); ++t) shapes.push_back(maker_.samples->shape(t));
  setShapes(batch_, shapes, top);
}

void RecordLayer::assign() {
  const DataOptions& o = *context().data;
  maker_.options.myRanks = o.myRanks, maker_.options.workers = o.testWorkers;
  current_ = nullptr;
  if (feed_) feed_->assign(o.myRanks, o.testWorkers);
}

const data::Batch& RecordLayer::nextOfFeed() {
  const RunState& run = *context().run;
  return feed_->next(run.rank, run.step, run.interrupt);
}

void RecordLayer::compute(const Blobs&, const Blobs& top) {
  const data::Batch& batch = scoring() ? scored() : nextOfFeed();
  current_ = &batch;
  if (batch.n == 0) {  // all were skipped: the outputs of this pass belong to no record
    for (Blob* t : top) t->fillData(0);
    return;
  }
  setShapes(batch.n, batch.shapes, top);
  withType(context().dtype, [&]<class T>() {
    for (size_t t = 0; t < top.size(); ++t) copy(batch.tops[t], batch.n, transposed(t), top[t]->mutableData<T>());
  });
  if (feed_) feed_->giveBack();
}

void RecordLayer::takeBlobs(const Blobs& top) {
  const auto* from = std::get_if<FromBlobs>(&context().data->source);
  if (!from) invalid("no records were opened; this net was built for planning only");
  const std::vector<const Blob*>& given = *from->blobs;
  if (given.size() != top.size()) invalid("{} blob(s) are given, this layer has {} tops", given.size(), top.size());
  for (size_t t = 0; t < top.size(); ++t) {
    const Shape &have = given[t]->shape(), &want = top[t]->shape();
    const bool fits =
        transposed(t) ? have == want : have.axes() > 0 && have[0] >= batch_ && have.count(1) == want.count(1);
    if (!fits) invalid("blob {} is {}, this layer takes {} for top {}", t, have.brief(), want.brief(), t);
    withType(context().dtype,
             [&]<class T>() { std::copy_n(given[t]->data<float>(), want.count(), top[t]->mutableData<T>()); });
  }
}

std::vector<int> RecordLayer::dims(size_t top, const Shape& sample, int n) const {
  std::vector<int> all = {n};
  all.insert(all.end(), sample.dims().begin(), sample.dims().end());
  if (transposed(top)) std::swap(all[0], all[1]);
  return all;
}

void RecordLayer::setShapes(int n, const std::vector<Shape>& samples, const Blobs& top) {
  for (size_t t = 0; t < top.size(); ++t) top[t]->reshape(Shape(dims(t, samples[t], n)));
}

const data::Batch& RecordLayer::scored() {
  const int64_t from = context().run->step * batch_, last = context().data->last, size = maker_.source->size();
  const int64_t to = std::min(from + batch_, last < 0 ? size : std::min(last, size));
  if (from >= to) internal("no record is left for batch {}", context().run->step);
  maker_.score(from, to, context().run->step, &scored_);
  return scored_;
}

}  // namespace crema::layers
