// Whole runs whose host sends rows, ranges of a database and the confirmation of snapshots.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/sha256.h"
#include "data/lmdb_pages.h"
#include "support/worker_runs.h"
#include "worker/worker.h"

namespace crema::worker {
namespace {

using Outcome = crema::test::RunOutcome;

class WorkerHostTest : public crema::test::WorkerRuns {
 protected:
  // The trained layers; the data layer's own description is left out.
  std::string modelOf(const wire::Job& job, const Host& host) {
    endsWell(run(job, "", nullptr, train::Request::kNone, host));
    caffe::NetParameter net;
    EXPECT_TRUE(net.ParseFromString(model()));
    EXPECT_EQ(net.layer(0).name(), "data");
    net.mutable_layer()->DeleteSubrange(0, 1);
    return sha256Hex(net.SerializeAsString());
  }
  std::string database() const { return folder_.file("db") + "/data.mdb"; }
  // The database as a file that only the host can read.
  wire::RemoteFile remoteDatabase() const {
    const std::string bytes = readFile(database());
    const data::LmdbIndex index = data::lmdbIndex(data::LocalFileBytes(database()), database());
    wire::RemoteFile file;
    file.set_size(bytes.size()), file.set_description("hdfs://n/db"), file.set_read_ahead(4096);
    auto* to = file.mutable_index();
    to->set_page_size(index.pageSize), to->set_pages(index.pages);
    for (size_t i = 0; i < index.leaf.size(); ++i) {
      to->add_leaf(index.leaf[i]);
      to->add_count(static_cast<uint32_t>(index.first[i + 1] - index.first[i]));
    }
    return file;
  }
};

TEST_F(WorkerHostTest, RangesOfARemoteDatabaseTrainItsModel) {
  const std::string expected = modelOf(job(2), nullptr), bytes = readFile(database());
  wire::Job remote = job(2);
  *remote.mutable_train_file() = remoteDatabase();
  remote.set_work_folder(folder_.path());
  std::atomic<uint64_t> sent{0};
  const auto host = [&](const wire::Event& e, HostRows& rows) {
    if (!e.has_need()) return;
    wire::Input in;
    in.mutable_bytes()->set_offset(e.need().offset());
    in.mutable_bytes()->set_data(bytes.substr(e.need().offset(), e.need().length()));
    sent += e.need().length();
    rows.accept(in);
  };
  std::filesystem::rename(database(), folder_.file("elsewhere"));  // a worker that opened it itself would fail
  *remote.mutable_test_file() = remote.train_file();
  EXPECT_EQ(modelOf(remote, host), expected);
  EXPECT_GT(sent, 0u);
}

TEST_F(WorkerHostTest, RowsTrainTheModelOfTheDatabaseThatTheyCameFrom) {
  const std::string expected = modelOf(job(2), nullptr);
  const auto all = crema::test::datums(folder_.file("db"));
  const wire::Job j = ofRows(job(2), true);
  const auto host = [&](const wire::Event& e, HostRows& rows) {
    if (e.ByteSizeLong()) return;  // all is sent at the start: blocks of five that this worker's two ranks own
    const auto& plan = rows.train->plan();
    for (int64_t local = 0; local < plan.expected(); local += 5) sendRows(rows, all, plan.globalOf(local), 5);
    wire::Input end;
    end.mutable_end();
    rows.accept(end);
  };
  EXPECT_EQ(modelOf(j, host), expected);
}

TEST_F(WorkerHostTest, SnapshotsAndTheModelAreReportedOnceTheHostHasPublishedThem) {
  wire::Job j = job(2, "snapshot: 4");
  j.set_publishes(true), j.set_snapshot_prefix(folder_.file("snap"));
  j.set_published_prefix("hdfs://n/snap");
  constexpr int64_t kModel = -1;
  std::vector<int64_t> published;
  const auto host = [&](const wire::Event& e, HostRows& rows) {
    if (!e.has_snapshot() && !e.has_model()) return;
    EXPECT_TRUE(fileExists(e.has_model() ? e.model().path() : e.snapshot().state())) << "it is whole when it comes";
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the training goes on meanwhile
    published.push_back(e.has_model() ? kModel : e.snapshot().iteration());
    wire::Input in;
    in.mutable_published()->set_iteration(e.snapshot().iteration());
    rows.accept(in);
  };
  const Outcome o = run(j, "", nullptr, train::Request::kNone, host);
  endsWell(o);
  EXPECT_EQ(published, (std::vector<int64_t>{4, 8, 12, kModel}));
  std::vector<int64_t> reported;
  for (const auto& e : o.events)
    if (e.has_snapshot() || e.has_model()) reported.push_back(e.has_model() ? kModel : e.snapshot().iteration());
  EXPECT_EQ(reported, published) << "the last ones too, which came after the last step";
}

// A host that cannot publish what `asked` holds for.
auto refusing(bool (wire::Event::*asked)() const, const std::string& why) {
  return [=](const wire::Event& e, HostRows& rows) {
    if (!(e.*asked)()) return;
    wire::Input in;
    in.mutable_published()->set_failed(why);
    rows.accept(in);
  };
}

TEST_F(WorkerHostTest, WhatTheHostCannotPublishEndsTheRunWithItsReason) {
  for (const auto asked : {&wire::Event::has_snapshot, &wire::Event::has_model}) {
    wire::Job j = job(2, asked == &wire::Event::has_snapshot ? "snapshot: 4" : "");
    j.set_publishes(true), j.set_snapshot_prefix(folder_.file("snap"));
    const Outcome o = run(j, "", nullptr, train::Request::kNone, refusing(asked, "hdfs://n: no space left"));
    EXPECT_NE(o.error.find("hdfs://n: no space left"), std::string::npos) << o.error;
    EXPECT_TRUE(o.done.empty()) << "no worker has finished without it";
    for (const auto& e : o.events) EXPECT_FALSE((e.*asked)());
  }
}

// The file system of the worker that leads refuses the model: that worker is lost, and the other one has it published.
TEST_F(WorkerHostTest, AModelThatOneHostCannotPublishIsPublishedByAnother) {
  wire::Job j = job(2);
  j.set_publishes(true), j.set_replacement("continue");
  std::atomic<int> asked{0};
  const auto host = [&](const wire::Event& e, HostRows& rows) {
    if (!e.has_model()) return;
    wire::Input in;
    in.mutable_published();
    if (asked++ == 0) in.mutable_published()->set_failed("hdfs://n: no space left");
    rows.accept(in);
  };
  const Outcome o = run(j, "", nullptr, train::Request::kNone, host);
  EXPECT_EQ(o.error, "no error");
  EXPECT_EQ(asked, 2);
  const auto count = [&](bool (wire::Event::*is)() const) {
    return std::count_if(o.events.begin(), o.events.end(), [=](const wire::Event& e) { return (e.*is)(); });
  };
  EXPECT_EQ(count(&wire::Event::has_lost), 1);
  EXPECT_EQ(count(&wire::Event::has_model), 1);
}

}  // namespace
}  // namespace crema::worker
