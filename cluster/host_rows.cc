#include "cluster/host_rows.h"

#include "collective/mesh.h"

namespace crema {
namespace {

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
      badData(
          "a batch of {} rows from the host has a column of {} bytes where {} are announced; host and executable are "
          "of different versions",
          rows, column.values().size(), total);
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

StagePlan planOf(const wire::Job& job, const wire::RowFeed& feed) {
  const RankRange mine = ranksOfWorker(job.worker(), job.workers(), job.ranks());
  return {feed.records(), feed.sharded(), feed.batch(), job.ranks(), mine.lo, mine.hi};
}

}  // namespace

HostRows::HostRows(const wire::Job& job, bool scoring, const Interrupt* interrupt) {
  const auto staged = [&](const wire::RowFeed& feed) {
    const StagePlan plan = planOf(job, feed);
    if (plan.sharded) checkDealing({plan.records, plan.batch, plan.ranks});
    return std::make_shared<StagedSource>(job.work_folder(), feed.description(), plan, interrupt);
  };
  if (scoring && job.has_test_rows()) window = std::make_shared<RowWindow>(job.test_rows().description(), interrupt);
  if (!scoring && job.has_train_rows()) train = staged(job.train_rows());
  if (!scoring && job.has_test_rows()) test = staged(job.test_rows());
}

void HostRows::append(bool forTest, const wire::RowBatch& batch) {
  const auto& staged = forTest ? test : train;
  const bool scoring = forTest && window;
  if (!staged && !scoring)
    internal("the host sends rows for {}, which its Job does not announce", forTest ? "TEST" : "TRAIN");
  std::vector<ColumnReader> columns;
  for (const auto& column : batch.column()) columns.emplace_back(column, batch.rows());
  std::vector<std::string_view> parts(columns.size());
  const int64_t local = scoring ? 0 : staged->plan().localOf(batch.first());
  if (local < 0) internal("the host sends row {} of {} to the wrong worker", batch.first(), staged->describe());
  for (int r = 0; r < batch.rows(); ++r) {
    for (size_t c = 0; c < columns.size(); ++c) parts[c] = columns[c].next();
    if (scoring)
      window->append(parts);
    else
      staged->append(staged->plan().globalOf(local + r), parts);
    ++arrived;
  }
}

void HostRows::accept(const wire::Input& input) {
  if (input.has_rows()) append(input.rows().test(), input.rows().batch());
  if (!input.has_end()) return;
  if (input.end().test() && window) window->finish();
  if (input.end().test() && test) test->finish();
  if (!input.end().test() && train) train->finish();
}

void HostRows::fail(const Error& error) {
  if (train) train->fail(error);
  if (test) test->fail(error);
  if (window) window->fail(error);
}

}  // namespace crema
