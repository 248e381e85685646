#include "data/batch_feed.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "base/waiting.h"
#include "data/shuffle.h"

namespace crema::data {

void SkippedRecords::add(int64_t record, const Error& why) {
  constexpr size_t kNamed = 10;
  const MutexLock lock(mutex_);
  if (!records_.insert(record).second || records_.size() > kNamed) return;
  std::string message = why.what();
  std::replace(message.begin(), message.end(), '\n', ',');
  LOG_WARNING("Skip image: {}{}", message, records_.size() == kNamed ? " (further ones are only counted)" : "");
}

bool SkippedRecords::has(int64_t record) const {
  const MutexLock lock(mutex_);
  return records_.count(record) > 0;
}

int64_t SkippedRecords::count() const {
  const MutexLock lock(mutex_);
  return static_cast<int64_t>(records_.size());
}

void BatchMaker::begin(int n, int64_t step, int rank, Batch* batch) const {
  batch->step = step, batch->rank = rank, batch->n = n;
  batch->tops.resize(samples->tops());
  batch->shapes.clear();
  for (size_t t = 0; t < samples->tops(); ++t) {
    batch->shapes.push_back(samples->shape(t));
    batch->tops[t].resize(static_cast<size_t>(n) * static_cast<size_t>(samples->shape(t).count()));
  }
  batch->records.assign(static_cast<size_t>(n), -1);
}

SampleRandom BatchMaker::randomOf(const Batch& batch) const {
  return {options.seed, static_cast<uint64_t>(batch.step), static_cast<uint32_t>(batch.rank), options.layer};
}

std::optional<Record> BatchMaker::put(int64_t index, int item, Batch* batch) const {
  if (options.skipping && skipped->has(index)) return std::nullopt;
  const Record record = source->read(index);
  const SampleRandom random = randomOf(*batch);
  std::vector<float*> out;
  for (size_t t = 0; t < samples->tops(); ++t)
    out.push_back(batch->tops[t].data() + static_cast<size_t>(item) * static_cast<size_t>(samples->shape(t).count()));
  try {
    inside(
        [&] {
          return fmt::format("in record '{}' (number {}) of {}", printable(record.key), index, source->describe());
        },
        [&] {
          if (samples->varies())
            samples->makeOne(record, random, &batch->shapes, &batch->tops);
          else
            samples->make(record, random, item, out);
        });
  } catch (const Undecodable& e) {
    if (!options.skipping) throw;
    skipped->add(index, e);
    return std::nullopt;
  }
  batch->records[static_cast<size_t>(item)] = index;
  return record;
}

int64_t BatchMaker::recordAt(const Sharding& sharding, int rank, int64_t position) const {
  if (!options.shuffle) return recordIndex(sharding, rank, position);
  const int64_t own = ownedRecords(sharding, rank), epoch = position / own;
  if (options.files) {
    const SampleRandom all{options.seed, static_cast<uint64_t>(epoch), 0, options.layer};
    return options.files->at(epoch, recordIndex(sharding, rank, position), [&](int64_t file) {
      return all.stream(RandomPurpose::kShuffle, file < 0 ? "files" : fmt::format("file {}", file));
    });
  }
  const SampleRandom random{options.seed, static_cast<uint64_t>(epoch), static_cast<uint32_t>(rank), options.layer};
  return recordIndex(sharding, rank, permuted(random.stream(RandomPurpose::kShuffle, ""), own, position % own));
}

void BatchMaker::train(int rank, int64_t step, Batch* batch) const {
  const Sharding sharding{source->size(), options.batch, options.ranks};
  const bool within = testCycle() > 0;
  const int64_t own = within ? options.batch : ownedRecords(sharding, rank), first = step * options.batch;
  begin(options.batch, step, rank, batch);
  for (int i = 0; options.choose && i < options.batch; ++i) put(options.choose(randomOf(*batch), i), i, batch);
  for (int i = 0; !options.choose && i < options.batch; ++i) {
    int64_t tried = 0;
    while (!put(recordAt(sharding, rank, first + (within ? (i + tried) % own : i + tried)), i, batch))
      if (++tried == own && within)
        throw EmptyBatch(fmt::format("none of the {} records of batch {} in {} can be decoded; the log names the first",
                                     own, step, source->describe()));
      else if (tried == own)
        badData("none of the {} records of rank {} in {} can be decoded; the log names the first ones", own, rank,
                source->describe());
  }
}

void BatchMaker::score(int64_t from, int64_t to, int64_t step, Batch* batch) const {
  begin(static_cast<int>(to - from), step, 0, batch);
  int n = 0;
  batch->ids.clear();
  for (int64_t i = from; i < to; ++i)
    if (const auto record = put(i, n, batch)) batch->ids.emplace_back(record->key), ++n;
  batch->n = n;
  for (size_t t = 0; t < samples->tops(); ++t)
    batch->tops[t].resize(static_cast<size_t>(n) * static_cast<size_t>(batch->shapes[t].count()));
  batch->records.resize(static_cast<size_t>(n));
}

// One background thread, from one place on.
class BatchFeed::Producer {
 public:
  Producer(const BatchMaker& maker, Place from) : maker_(maker), thread_([this, from] { produce(from); }) {}
  ~Producer() {
    stop();
    thread_.join();
  }

  // It ends behind the batch that it is making.
  void stop() {
    const MutexLock lock(mutex_);
    stopping_ = true;
    ready_.clear(), spare_.clear();
    changed_.notify_all();
  }
  bool ended() {
    const MutexLock lock(mutex_);
    return ended_;
  }
  // Without a deadline: the thread ends every batch with one in ready_ or with failed_, whatever was thrown. How long a
  // batch may take is its source's to say: one that gets rows from a host watches that host's interrupt.
  void next(Batch* current, const Interrupt* interrupt) {
    MutexLock lock(mutex_);
    waitUntil(changed_, lock, interrupt, [&]() CREMA_REQUIRES(mutex_) { return !ready_.empty() || failed_; });
    if (ready_.empty()) std::rethrow_exception(failed_);
    *current = std::move(ready_.front());
    ready_.pop_front();
    taken_ = true;
  }
  void giveBack(decltype(Batch::tops) memory) {
    const MutexLock lock(mutex_);
    spare_.push_back(std::move(memory));
    taken_ = false;
    changed_.notify_all();
  }

 private:
  void produce(Place from);
  void makeAll(Place place);

  const BatchMaker maker_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_ CREMA_GUARDED_BY(mutex_);
  bool taken_ CREMA_GUARDED_BY(mutex_) = false;                        // a batch whose memory has not come back
  std::vector<decltype(Batch::tops)> spare_ CREMA_GUARDED_BY(mutex_);  // whose memory is reused
  std::exception_ptr failed_ CREMA_GUARDED_BY(mutex_);
  bool stopping_ CREMA_GUARDED_BY(mutex_) = false, ended_ CREMA_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

void BatchFeed::Producer::makeAll(Place place) {
  for (;; place = after(maker_, place)) {
    Batch batch;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock.standard(), [&]() CREMA_REQUIRES(mutex_) {
        return stopping_ || ready_.size() + taken_ < static_cast<size_t>(std::max(1, maker_.options.prefetch));
      });
      if (stopping_) return;
      if (!spare_.empty()) batch.tops = std::move(spare_.back()), spare_.pop_back();
    }
    maker_.train(maker_.options.myRanks[place.rank], place.step, &batch);
    const MutexLock lock(mutex_);
    if (stopping_) return;
    ready_.push_back(std::move(batch));
    changed_.notify_all();
  }
}

void BatchFeed::Producer::produce(Place from) {
  std::exception_ptr failed;
  try {
    makeAll(from);
  } catch (...) {
    failed = std::current_exception();
  }
  const MutexLock lock(mutex_);
  failed_ = failed, ended_ = true;
  changed_.notify_all();
}

BatchFeed::BatchFeed(BatchMaker maker) : maker_(std::move(maker)) {
  if (maker_.options.choose) return;
  inside([&] { return "in " + maker_.source->describe(); },
         [&] {
           checkSharding({maker_.source->size(), maker_.options.batch, maker_.options.ranks});
         });
}

BatchFeed::~BatchFeed() { maker_.source->close(); }

BatchFeed::Place BatchFeed::after(const BatchMaker& maker, Place p) {
  const FeedOptions& o = maker.options;
  if (o.test) return {TestSharding{maker.testCycle(), o.workers}.after(p.step), 0};
  const int64_t per = o.stepsPerRank;
  if ((p.step + 1) % per != 0) return {p.step + 1, p.rank};
  if (p.rank + 1 < o.myRanks.size()) return {p.step + 1 - per, p.rank + 1};
  return {p.step + 1, 0};
}

void BatchFeed::retire() {
  std::erase_if(retired_, [](const auto& producer) { return producer->ended(); });
  if (!producer_) return;
  producer_->stop();
  retired_.push_back(std::move(producer_));
}

void BatchFeed::restart(int rank, int64_t step) {
  retire();
  const auto found = std::find(maker_.options.myRanks.begin(), maker_.options.myRanks.end(), rank);
  if (found == maker_.options.myRanks.end()) internal("rank {} is not fed here", rank);
  expected_ = {step, static_cast<size_t>(found - maker_.options.myRanks.begin())};
  producer_ = std::make_unique<Producer>(maker_, expected_);
}

void BatchFeed::assign(std::vector<int> myRanks, int workers) {
  FeedOptions& o = maker_.options;
  const bool goesOn = producer_ && !producer_->ended();  // who has failed may fare better
  if (goesOn && o.myRanks == myRanks && o.workers == workers) return;
  retire();
  o.myRanks = std::move(myRanks), o.workers = workers;
}

void BatchFeed::giveBack() {
  auto memory = std::exchange(current_.tops, {});
  if (producer_ && !memory.empty()) producer_->giveBack(std::move(memory));
}

const Batch& BatchFeed::next(int rank, int64_t step, const Interrupt* interrupt) {
  const double from = monotonicSeconds();
  const bool inOrder = producer_ && expected_.step == step && maker_.options.myRanks[expected_.rank] == rank;
  giveBack();  // to the thread that made it, as another may have made all of its own before it could have this memory
  if (!inOrder) restart(rank, step);
  producer_->next(&current_, interrupt);
  expected_ = after(maker_, expected_);
  waited_ += monotonicSeconds() - from;
  return current_;
}

}  // namespace crema::data
