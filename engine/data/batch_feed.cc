#include "data/batch_feed.h"

#include <algorithm>

#include "base/error.h"

namespace crema {
namespace {

caffe::Datum parse(const RecordSource& source, int64_t index) {
  const Record record = source.read(index);
  caffe::Datum datum;
  if (!datum.ParseFromArray(record.value.data(), static_cast<int>(record.value.size())))
    badData("record '{}' of {} is no Caffe Datum ({} bytes)", record.key, source.describe(), record.value.size());
  return datum;
}

RandomStream stream(const FeedOptions& o, RandomPurpose purpose, int64_t step, int rank) {
  RandomKey key;
  key.seed = o.seed;
  key.purpose = purpose;
  key.name = hashName(o.layer);
  key.step = static_cast<uint64_t>(step);
  key.rank = static_cast<uint32_t>(rank);
  return RandomStream(key);
}

}  // namespace

void makeBatch(const RecordSource& source, const Transformer& transformer, const Shape& shape,
               const std::vector<int64_t>& indices, const FeedOptions& o, int64_t step, int rank, Batch* batch) {
  const RandomStream mirror = stream(o, RandomPurpose::kMirror, step, rank),
                     crop = stream(o, RandomPurpose::kCrop, step, rank);
  const auto size = static_cast<size_t>(shape.count());
  batch->step = step, batch->rank = rank, batch->n = static_cast<int>(indices.size());
  batch->data.resize(indices.size() * size);
  batch->labels.resize(indices.size());
  Image decoded;
  for (size_t i = 0; i < indices.size(); ++i) {
    const caffe::Datum datum = parse(source, indices[i]);
    inside(
        [&] {
          return fmt::format("in record '{}' (number {}) of {}", source.read(indices[i]).key, indices[i],
                             source.describe());
        },
        [&] {
          const ImageView image = viewOf(datum, &decoded, transformer.colour());
          if (!(transformer.outputShape(image) == shape))
            badData("the record becomes {} where the records before became {}; all records of a batch need one shape",
                    transformer.outputShape(image).brief(), shape.brief());
          transformer.apply<float>(image, mirror, crop, static_cast<int>(i), batch->data.data() + i * size);
        });
    batch->labels[i] = static_cast<float>(datum.label());
  }
}

BatchFeed::BatchFeed(std::shared_ptr<const RecordSource> source, Transformer transformer, const FeedOptions& options)
    : source_(std::move(source)), transformer_(std::move(transformer)), options_(options) {
  inside([&] { return "in " + source_->describe(); },
         [&] {
           checkDealing({source_->size(), options_.batch, options_.ranks});
           Image decoded;
           shape_ = transformer_.outputShape(viewOf(parse(*source_, 0), &decoded, transformer_.colour()));
         });
}

BatchFeed::~BatchFeed() { stop(); }

BatchFeed::Place BatchFeed::after(Place p) const {
  const int64_t per = options_.stepsPerRank;
  if ((p.step + 1) % per != 0) return {p.step + 1, p.rank};
  if (p.rank + 1 < options_.myRanks.size()) return {p.step + 1 - per, p.rank + 1};
  return {p.step + 1, 0};
}

void BatchFeed::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  stopping_ = false;
}

void BatchFeed::restart(int rank, int64_t step) {
  stop();
  ready_.clear();
  failed_ = nullptr;
  const auto found = std::find(options_.myRanks.begin(), options_.myRanks.end(), rank);
  if (found == options_.myRanks.end()) internal("rank {} is not fed here", rank);
  expected_ = {step, static_cast<size_t>(found - options_.myRanks.begin())};
  thread_ = std::thread([this, from = expected_] { produce(from); });
}

const Batch& BatchFeed::next(int rank, int64_t step) {
  const bool inOrder = thread_.joinable() && expected_.step == step && options_.myRanks[expected_.rank] == rank;
  if (!inOrder) restart(rank, step);
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || failed_; });
  if (ready_.empty()) std::rethrow_exception(failed_);
  spare_.push_back(std::move(current_));
  current_ = std::move(ready_.front());
  ready_.pop_front();
  expected_ = after(expected_);
  changed_.notify_all();
  return current_;
}

void BatchFeed::produce(Place place) {
  const Dealing dealing{source_->size(), options_.batch, options_.ranks};
  std::vector<int64_t> indices(static_cast<size_t>(options_.batch));
  try {
    for (;; place = after(place)) {
      Batch batch;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock,
                      [&] { return stopping_ || ready_.size() < static_cast<size_t>(std::max(1, options_.prefetch)); });
        if (stopping_) return;
        if (!spare_.empty()) batch = std::move(spare_.back()), spare_.pop_back();
      }
      const int rank = options_.myRanks[place.rank];
      for (int i = 0; i < options_.batch; ++i)
        indices[static_cast<size_t>(i)] = recordIndex(dealing, rank, place.step * options_.batch + i);
      makeBatch(*source_, transformer_, shape_, indices, options_, place.step, rank, &batch);
      std::lock_guard<std::mutex> lock(mutex_);
      ready_.push_back(std::move(batch));
      changed_.notify_all();
    }
  } catch (...) {
    std::lock_guard<std::mutex> lock(mutex_);
    failed_ = std::current_exception();
    changed_.notify_all();
  }
}

}  // namespace crema
