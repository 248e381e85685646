#include "worker/host_rows.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "collective/mesh.h"
#include "data/lmdb_pages.h"

namespace crema::worker {
namespace {

constexpr int kMostRows = 1 << 20;  // of one message; hosts send some thousands
constexpr char kVersions[] = "host and executable are of different versions";

// The rows of one column, one after the other.
class ColumnReader {
 public:
  ColumnReader(const wire::RowBatch::Column& column, int rows) : column_(column) {
    const bool own = column.length_size() > 0;
    uint64_t total = 0;
    if (own)
      for (const uint32_t n : column.length()) total += n;
    else
      total = uint64_t{column.width()} * static_cast<uint64_t>(rows);
    if ((own && column.length_size() != rows) || total != column.values().size())
      badData("a batch of {} rows from the host has a column of {} bytes where {} are announced; {}", rows,
              column.values().size(), total, kVersions);
  }
  std::string_view next() {
    const size_t size = column_.length_size() ? column_.length(static_cast<int>(row_)) : column_.width();
    const std::string_view value(column_.values().data() + at_, size);
    at_ += size, ++row_;
    return value;
  }

 private:
  const wire::RowBatch::Column& column_;
  size_t at_ = 0, row_ = 0;
};

// TRAIN rows are sharded over ranks by blocks; TEST rows over workers by batches (TestSharding), or over as many
// workers as there are batches where those are fewer.
data::StagePlan planOf(const wire::Job& job, const wire::RowFeed& feed, bool test) {
  if (test && feed.sharded()) {
    const int64_t cycle = data::TestSharding::cycleOf(feed.records(), feed.batch());
    if (!cycle)
      internal("{} rows of {} are shared out in batches of {}", feed.records(), feed.description(), feed.batch());
    const int owners = static_cast<int>(std::min<int64_t>(job.workers(), cycle)), me = std::min(job.worker(), owners);
    return {feed.records(), true, feed.batch(), owners, me, std::min(me + 1, owners)};
  }
  const collective::RankRange mine = collective::ranksOfWorker(job.worker(), job.workers(), job.ranks());
  return {feed.records(), feed.sharded(), feed.batch(), job.ranks(), mine.lo, mine.hi};
}

data::LmdbIndex indexOf(const wire::LmdbIndex& m, const std::string& what) {
  data::LmdbIndex index;
  index.pageSize = m.page_size(), index.pages = m.pages();
  index.leaf.assign(m.leaf().begin(), m.leaf().end());
  index.first = {0};
  for (const uint32_t count : m.count()) index.first.push_back(index.records() + count);
  if (index.first.size() != index.leaf.size() + 1)
    badData("the index of {} contradicts itself; host and executable are of different versions", what);
  return index;
}

}  // namespace

HostRows::HostRows(const wire::Job& job, bool scoring, const std::function<void(const wire::Event&)>& emit,
                   const Interrupt* interrupt) {
  const auto remote = [&](bool ofTest, const wire::RemoteFile& file) {
    const auto ask = [emit, ofTest](uint64_t offset, uint64_t length) {
      wire::Event event;
      auto* need = event.mutable_need();
      need->set_test(ofTest), need->set_offset(offset), need->set_length(length);
      emit(event);
    };
    return std::make_shared<data::RemoteFile>(job.work_folder(), file.description(), file.size(), file.read_ahead(),
                                              ask, interrupt);
  };
  const auto database = [](const std::shared_ptr<data::RemoteFile>& bytes, const wire::RemoteFile& file) {
    return data::lmdbSource(bytes, indexOf(file.index(), file.description()), file.description());
  };
  if (job.has_train_file() && !scoring) trainFile = remote(false, job.train_file());
  if (job.has_test_file()) testFile = remote(true, job.test_file());
  if (trainFile && job.train_file().has_index()) trainRecords = database(trainFile, job.train_file());
  if (testFile && job.test_file().has_index()) testRecords = database(testFile, job.test_file());
  const auto staged = [&](const wire::RowFeed& feed, bool forTest) {
    const data::StagePlan plan = planOf(job, feed, forTest);
    if (plan.sharded) data::checkSharding({plan.records, plan.batch, plan.ranks});
    return std::make_shared<data::StagedSource>(job.work_folder(), feed.description(), plan, interrupt);
  };
  if (scoring && job.has_test_rows())
    window = std::make_shared<data::RowWindow>(job.test_rows().description(), interrupt);
  if (!scoring && job.has_train_rows()) train = staged(job.train_rows(), false);
  if (!scoring && job.has_test_rows()) test = staged(job.test_rows(), true);
}

void HostRows::append(bool forTest, const wire::RowBatch& batch) {
  const auto& staged = forTest ? test : train;
  const bool scoring = forTest && window;
  if (!staged && !scoring)
    badData("the host sends rows for {}, which its Job does not announce; {}", forTest ? "TEST" : "TRAIN", kVersions);
  if (batch.rows() < 0 || batch.rows() > kMostRows || batch.column_size() == 0)
    badData("the host sends a batch of {} rows in {} columns; {}", batch.rows(), batch.column_size(), kVersions);
  std::vector<ColumnReader> columns;
  for (const auto& column : batch.column()) columns.emplace_back(column, batch.rows());
  std::vector<std::string_view> parts(columns.size());
  const int64_t local = scoring ? 0 : staged->plan().localOf(batch.first());
  if (local < 0)
    badData("the host sends row {} of {} to the wrong worker; {}", batch.first(), staged->describe(), kVersions);
  for (int r = 0; r < batch.rows(); ++r) {
    for (size_t c = 0; c < columns.size(); ++c) parts[c] = columns[c].next();
    if (scoring)
      window->append(parts);
    else
      staged->append(staged->plan().globalOf(local + r), parts);
    ++activity.arrived;
  }
}

void HostRows::accept(const wire::Input& input) {
  const std::string& failure = input.has_bytes() ? input.bytes().failed() : input.published().failed();
  if (!failure.empty()) {
    hostFailed = true;
    throw Error(ErrorKind::kIo, failure);
  }
  if (input.has_published()) ++published, ++activity.arrived;
  if (input.has_bytes()) {
    const auto& file = input.bytes().test() ? testFile : trainFile;
    if (!file) badData("the host sends bytes of a file that its Job does not announce; {}", kVersions);
    file->arrived(input.bytes().offset(), input.bytes().data());
    ++activity.arrived;
  }
  if (input.wish().snapshot()) snapshotRequested = true;
  if (input.wish().stop()) stopRequested = true;
  if (input.wish().has_snapshots()) snapshotsAsked = input.wish().snapshots();
  if (input.has_preparing()) ++activity.arrived, ++activity.preparing;
  if (input.has_rows()) append(input.rows().test(), input.rows().batch());
  if (input.has_rows() || input.has_end()) rowsCame_ = true;
  if (!input.has_end()) return;
  if (input.end().test() && window) window->finish();
  if (input.end().test() && test) test->finish();
  if (!input.end().test() && train) train->finish();
}

void HostRows::waitForRows(const Interrupt& interrupt) const {
  while ((train || test) && !rowsCame_) {
    interrupt.check();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void HostRows::fail(const Error& error) {
  if (train) train->fail(error);
  if (test) test->fail(error);
  if (window) window->fail(error);
  if (trainFile) trainFile->fail(error);
  if (testFile) testFile->fail(error);
}

layers::DataSource sourceOf(const std::shared_ptr<const data::RecordSource>& rows,
                            const std::shared_ptr<const data::RecordSource>& records, const std::string& path) {
  if (rows) return layers::FromHost{rows, true};
  if (records) return layers::FromHost{records, false};
  if (!path.empty()) return layers::FromPath{path};
  return layers::FromPrototxt{};
}

}  // namespace crema::worker
