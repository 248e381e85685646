#include "worker/job.h"

#include <gtest/gtest.h>

#include "support/message_of.h"
#include "worker/joining.h"

namespace crema::worker {
namespace {

using crema::test::messageOf;

train::RunOptions everyField() {
  train::RunOptions o;
  o.solver.set_base_lr(0.25f), o.solver.set_snapshot_prefix("the/solver's");
  o.netOrigin = "nets/a.prototxt", o.folder = "nets";
  o.ranks = 7, o.worker = 2, o.workers = 3;
  o.threads = 5, o.isa = "avx2";
  o.snapshot = "s.solverstate", o.snapshotName = "hdfs:/s";
  o.weights = "w.caffemodel", o.weightsName = "hdfs:/w";
  o.snapshotPrefix = "out/p", o.publishedPrefix = "hdfs:/p";
  o.resize = true, o.foundSnapshot = true, o.drawnSeed = true;
  return o;
}

train::RunOptions readBack(const wire::Job& job) {
  return runOf(job, HostRows(
                        job, false, [](const wire::Event&) {}, nullptr));
}

TEST(Start, SharesAreThoseOfItsMembers) {
  const auto three = [] {
    control::ToMember::Start s;
    s.set_generation(2), s.set_member(1);
    for (const int end : {3, 3, 8})
      s.add_share_end(end), s.add_number(end), s.add_peers("1.2.3.4:5"), s.add_iteration(-1);
    return s;
  };
  const auto shares = sharesOf(three(), 8);
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_EQ(shares[1].lo, 3);
  EXPECT_EQ(shares[1].hi, 3);
  EXPECT_EQ(shares[2].hi, 8);
  using Start = control::ToMember::Start;
  const std::vector<void (*)(Start&)> damages = {
      [](Start& s) { s.clear_number(); },      [](Start& s) { s.mutable_share_end()->RemoveLast(); },
      [](Start& s) { s.clear_peers(); },       [](Start& s) { s.add_iteration(7); },
      [](Start& s) { s.set_member(3); },       [](Start& s) { s.set_member(-1); },
      [](Start& s) { s.set_share_end(1, 2); }, [](Start& s) { s.set_share_end(2, 7); },
      [](Start& s) { s.set_iteration(0, -2); }};
  for (const auto& damage : damages) {
    Start s = three();
    damage(s);
    EXPECT_NE(messageOf([&] { sharesOf(s, 8); }).find("for generation 2 fits no"), std::string::npos)
        << s.ShortDebugString();
  }
}

TEST(Job, CarriesEveryOptionOfARun) {
  const train::RunOptions o = everyField(), back = readBack(jobOf(o));
  EXPECT_EQ(back.solver.SerializeAsString(), o.solver.SerializeAsString());
  EXPECT_EQ(back.netOrigin, o.netOrigin);
  EXPECT_EQ(back.folder, o.folder);
  EXPECT_EQ(std::vector({back.ranks, back.worker, back.workers, back.threads}), std::vector({7, 2, 3, 5}));
  EXPECT_EQ(back.isa, o.isa);
  EXPECT_EQ(back.snapshot, o.snapshot);
  EXPECT_EQ(back.snapshotName, o.snapshotName);
  EXPECT_EQ(back.weights, o.weights);
  EXPECT_EQ(back.weightsName, o.weightsName);
  EXPECT_EQ(back.snapshotPrefix, o.snapshotPrefix);
  EXPECT_EQ(back.publishedPrefix, o.publishedPrefix);
  EXPECT_TRUE(back.resize && back.foundSnapshot && back.drawnSeed);
  EXPECT_FALSE(back.log) << "only worker 0 writes Caffe's lines";
}

TEST(Job, OfAnOlderHostHasNoPrefixAndTheSolversCounts) {
  wire::Job job = jobOf(everyField());
  job.clear_snapshot_prefix();
  EXPECT_EQ(readBack(job).snapshotPrefix, "the/solver's");
}

TEST(Job, SaysWhatItsCoordinatorIs) {
  wire::Job job = jobOf(everyField());
  EXPECT_EQ(coordinatorOf(job).host, "127.0.0.1") << "where none is named";
  job.set_host("10.0.0.4"), job.set_token("secret"), job.set_model_home("out/m");
  job.set_join_timeout(7), job.set_step_timeout(9);
  const cluster::CoordinatorOptions o = coordinatorOf(job);
  EXPECT_EQ(std::vector({o.host, o.secret.token, o.jobDigest}), std::vector({job.host(), job.token(), jobDigest(job)}));
  EXPECT_EQ(std::vector({o.members, o.port}), std::vector({3, 0}));
  EXPECT_EQ(std::vector({o.joinTimeout, o.stepTimeout}), std::vector({7.0, 9.0}));
  EXPECT_EQ(workOf(job)->naming().part(2, {}), "ranks 5 to 6") << "of seven in three workers";
}

TEST(Job, WhoseSolverIsGarbageSaysThatVersionsDiffer) {
  wire::Job job = jobOf(everyField());
  job.set_solver("\xff\xff\xff");
  EXPECT_EQ(messageOf([&] { readBack(job); }),
            "the job's solver cannot be read; host and executable are of different versions");
}

}  // namespace
}  // namespace crema::worker
