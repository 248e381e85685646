// The plan for training against the net computed layer by layer: the same bits in every blob, gradient and statistic, for
// nets drawn at random; and what is a group.
#include "net/training_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "kernels/updates/list.h"
#include "model/proto_io.h"
#include "net/scoring_plan.h"
#include "support/drawn_net.h"
#include "support/isas_here.h"
#include "support/train_net.h"

namespace crema::net {
namespace {

void fillNormal(unsigned seed, int count, float* to) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (int i = 0; i < count; ++i) to[i] = normal(random);
}

using State = std::vector<std::pair<std::string, std::vector<float>>>;

// Those of which a plan's backward pass has nothing to read may be overwritten.
State valuesOf(Net& net, const TrainingPlan* plan) {
  const int layers = static_cast<int>(net.layers().size());
  const auto isGone = [&](const Blob& blob) {
    if (!plan) return false;
    return std::any_of(plan->sharing().begin(), plan->sharing().end(), [&](const Need& need) {
      return !need.ofGradient && need.to < layers && need.blob->dataMemory() == blob.dataMemory();
    });
  };
  State all;
  for (const auto& name : net.blobNames()) {
    const Blob& b = net.blob(name);
    if (!isGone(b)) all.push_back({name, {b.data<float>(), b.data<float>() + b.count()}});
  }
  return all;
}

// What a step leaves: values behind the forward pass, gradients of blobs whose memory is their own, of parameters and statistics.
State stateOf(State values, Net& net, const std::set<const Blob*>& sharing) {
  State all = std::move(values);
  for (const auto& name : net.blobNames()) {
    const Blob& b = net.blob(name);
    if (sharing.count(&b)) continue;
    all.push_back({name + "'s gradient", {b.diff<float>(), b.diff<float>() + b.count()}});
    for (float& v : all.back().second) v += 0.f;  // a pooling stops with 0 what its ReLU stops with -0: decisions/0153
  }
  for (const auto& l : net.learnables()) {
    const float* from = net.flatDiff().diff<float>() + l.offset;
    all.push_back({l.label, {from, from + l.blob->count()}});
  }
  return all;
}

// The elements that gradients of learnt parameters have in the flat diff.
int64_t endOfLearnt(const Net& net) {
  int64_t end = 0;
  for (const auto& l : net.learnables())
    if (!l.keptPerPass) end = std::max(end, l.offset + l.blob->count());
  return end;
}

// The plan's backward pass; what it calls complete must not change any more.
struct Watched {
  TrainingPlan& plan;
  Net& net;
  int said = 0;
  void clearParamDiffs() { plan.clearParamDiffs(); }
  void forward() { plan.forward(); }
  void backward() {
    const float* diffs = net.flatDiff().diff<float>();
    const int64_t end = endOfLearnt(net);
    std::vector<std::pair<int64_t, std::vector<float>>> complete;
    plan.backward([&](int64_t from) { complete.push_back({from, {diffs + from, diffs + end}}), ++said; });
    for (const auto& [from, values] : complete)
      EXPECT_EQ(std::memcmp(values.data(), diffs + from, values.size() * sizeof(float)), 0) << "from " << from;
    if (!complete.empty()) {
      EXPECT_EQ(complete.back().first, 0);
    }
  }
};

template <class How>
State pass(Net& net, unsigned seed, How&& how,
           const TrainingPlan* plan = nullptr) {  // the values behind the forward pass
  how.clearParamDiffs();
  net.statistics().collect();
  net.setStep(seed, 0);
  fillNormal(seed, net.blob("x").count(), net.blob("x").mutableData<float>());
  how.forward();
  for (const auto& name : net.outputs())
    fillNormal(seed + 1, net.blob(name).count(), net.blob(name).mutableDiff<float>());
  State values = valuesOf(net, plan);
  how.backward();
  return values;
}

// Of blobs whose gradients have no memory of their own.
std::set<const Blob*> sharingGradients(const TrainingPlan& plan) {
  std::set<const Blob*> all;
  for (const Need& need : plan.sharing())
    if (need.ofGradient) all.insert(need.blob);
  return all;
}

// The gradients that a backward pass has left to the update, to their place: as the history of an update without momentum. How
// many there were.
int takeDeferred(TrainingPlan& plan, Net& net) {
  struct Fields {
    float momentum() const { return 0; }
  };
  const kernels::Update u{.rule = kernels::SGD(Fields(), 0), .rate = {.policy = 1}};
  int all = 0;
  for (const auto& l : net.learnables()) {
    const std::vector<float> weights(l.blob->data<float>(), l.blob->data<float>() + l.blob->count());
    std::vector<float> gradient(weights.size());
    if (!plan.updateDeferred(*l.blob, u, gradient.data(), 0)) continue;
    std::copy(weights.begin(), weights.end(), l.blob->mutableData<float>());
    std::copy(gradient.begin(), gradient.end(), net.flatDiff().mutableDiff<float>() + l.offset);
    ++all;
  }
  return all;
}

TEST(TrainingPlan, GivesTheBitsOfTheNetLayerByLayer) {
  int deferred = 0;
  int grouped = 0, sums = 0, stopped = 0, shared = 0, said = 0;
  size_t kept = 0, overwritten = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    const crema::test::DrawnNet drawn(seed, true);
    SCOPED_TRACE(drawn.text());
    kernels::Context kernels(*kernels::isasHere()[seed % kernels::isasHere().size()], 1 + static_cast<int>(seed % 3));
    const auto plain = test::trainNetOf(drawn.text(), kernels), planned = test::trainNetOf(drawn.text(), kernels);
    const bool defers = seed % 2 == 1;
    const bool separates = seed % 7 == 0;
    TrainingPlan plan(*planned, {.mayDefer = defers, .maySeparate = separates});
    for (int i = 0; i < static_cast<int>(planned->layers().size()); ++i) {
      const int by = plan.computedBy(i);
      stopped += plan.backwardBy(i) != by;
      grouped += by != i, sums += by != i && planned->layers()[static_cast<size_t>(by)]->type() == "Eltwise";
    }
    const int batch = plain->blob("x").shape()[0];
    for (unsigned step = 0; step < 3; ++step) {
      for (Net* net : {plain.get(), planned.get()}) {
        const Shape& s = net->blob("x").shape();
        net->blob("x").reshape({step == 2 ? (batch + 1) / 2 : batch, s[1], s[2], s[3]});
      }
      State valuesWanted = pass(*plain, seed + step, *plain);
      planned->setDebugInfo(separates && step == 1);  // then it is computed layer by layer as well
      for (const Need& need : plan.sharing())         // what is there from before is not to matter
        std::fill_n(need.ofGradient ? need.blob->mutableDiff<float>() : need.blob->mutableData<float>(),
                    need.blob->count(), NAN);
      Watched watched{plan, *planned};
      if (defers) plan.deferGradients();
      State values = pass(*planned, seed + step, watched, &plan);
      kept += values.size(), overwritten += valuesWanted.size() - values.size();
      std::erase_if(valuesWanted, [&](const auto& wanted) {
        return std::none_of(values.begin(), values.end(), [&](const auto& v) { return v.first == wanted.first; });
      });
      said += watched.said;
      deferred += takeDeferred(plan, *planned);
      std::set<const Blob*> sharing;  // in either net: without a gradient of their own in the end
      for (const auto& name : plain->blobNames())
        if (sharingGradients(plan).count(&planned->blob(name)))
          sharing.insert({&plain->blob(name), &planned->blob(name)}), ++shared;
      for (int i = 0; i < static_cast<int>(planned->layers().size()); ++i) {
        if (plan.computedBy(i) == i) continue;
        const Blob& top = *planned->tops(i)[0];  // a group leaves its gradient as it was
        for (const auto& name : plain->blobNames())
          if (const Blob& blob = planned->blob(name); &blob == &top || blob.sharesDiff(top))
            sharing.insert({&plain->blob(name), &blob});
      }
      const auto want = stateOf(std::move(valuesWanted), *plain, sharing),
                 got = stateOf(std::move(values), *planned, sharing);
      for (size_t i = 0; i < want.size(); ++i) {
        const auto &a = want[i].second, &b = got[i].second;
        ASSERT_EQ(a.size(), b.size());
        if (std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0) continue;
        const auto at = std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin();
        ADD_FAILURE() << want[i].first << " in step " << step << ", element " << at << ": " << a[at] << ", " << b[at];
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(deferred, 300);
  EXPECT_GT(grouped, 300);
  EXPECT_GT(sums, 25);
  EXPECT_GT(stopped, 25);
  EXPECT_GT(shared, 3000);
  EXPECT_GT(said, 3000);
  EXPECT_GT(kept, 3000);
  EXPECT_GT(overwritten, 300);
}

// A solver's net and its test net, which share weights; the second may compute in the memory of the first one's gradients.
struct TrainAndTest {
  TrainAndTest(const std::string& text, kernels::Context& kernels)
      : train(test::trainNetOf(text, kernels)), plan(*train) {
    NetOptions o;
    o.kernels = &kernels, o.needsBackward = false, o.sharesTrainedWith = train.get();
    caffe::NetState state;
    state.set_phase(caffe::TEST);
    test = std::make_unique<Net>(model::parseText<caffe::NetParameter>(text, "test"), state, o, "test");
  }
  std::unique_ptr<Net> train, test;
  TrainingPlan plan;
};

TEST(TrainingPlan, LendsItsMemoryToTestsBetweenSteps) {
  int lent = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const std::string text = crema::test::DrawnNet(seed).text();
    SCOPED_TRACE(text);
    kernels::Context kernels(kernels::bestIsa(), 2);
    TrainAndTest apart(text, kernels), together(text, kernels);
    ScoringPlan test(*together.test, {}, &together.plan);
    const Blob& memory = together.plan.lend(1);
    lent += memory.count() > 1;
    for (unsigned step = 0; step < 3; ++step) {
      const auto state = [&](TrainAndTest& nets) {
        State values = pass(*nets.train, seed + step, nets.plan, &nets.plan);
        return stateOf(std::move(values), *nets.train, sharingGradients(nets.plan));
      };
      EXPECT_EQ(state(apart), state(together));
      for (Net* net : {apart.test.get(), together.test.get()})
        fillNormal(seed + 50 + step, net->blob("x").count(), net->blob("x").mutableData<float>());
      EXPECT_EQ(apart.test->forward(), test.forward());
      for (const auto& name : apart.test->outputs()) {
        const Blob &want = apart.test->blob(name), &got = together.test->blob(name);
        ASSERT_EQ(want.count(), got.count());
        EXPECT_EQ(std::memcmp(want.data<float>(), got.data<float>(), sizeof(float) * static_cast<size_t>(got.count())),
                  0)
            << name;
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(lent, 50);
}

TEST(TrainingPlan, TestNetsFillOnlyWhatTheyDoNotShare) {
  kernels::Context kernels(kernels::bestIsa(), 1);
  const std::string
      input = "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 4 } } }\n",
      product =
          "layer {{ name: '{}' type: 'InnerProduct' bottom: '{}' top: '{}' inner_product_param {{ num_output: 4 "
          "weight_filler {{ type: 'constant' value: {} }} }} }}\n";
  const auto layer = [&](const char* name, const char* bottom, int value) {
    return fmt::format(fmt::runtime(product), name, bottom, name, value);
  };
  const auto train = test::trainNetOf(input + layer("shared", "x", 1), kernels);
  NetOptions o;
  o.kernels = &kernels, o.sharesTrainedWith = train.get();
  caffe::NetState state;
  state.set_phase(caffe::TEST);
  Net test(model::parseText<caffe::NetParameter>(input + layer("shared", "x", 2) + layer("own", "shared", 3), "test"),
           state, o, "test");
  EXPECT_EQ(test.layers()[1]->params()[0]->data<float>(), train->layers()[1]->params()[0]->data<float>());
  EXPECT_EQ(test.layers()[1]->params()[0]->dataAt(0), 1);
  EXPECT_EQ(test.layers()[2]->params()[0]->dataAt(0), 3);
}

}  // namespace
}  // namespace crema::net
