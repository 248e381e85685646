// Milliseconds per kernel call for layers of well-known nets, and their sums; of LeNet (64 images) and CIFAR-10 quick (100
// images) that is the arithmetic of one training step. Every answer is compared with the reference loops; a wrong one ends
// the program with exit code 1.
//
//   kernels_bench [instruction set, as -isa takes it] [threads] [repetitions] [part ...]
//
// Parts: lenet, quick, resnet1, resnet16, mobilenet2, depthwise, norms, filtered, alexnet1, lrn, updates; all when none is named.
// Times are the best of the repetitions: what the machine can do, not what its neighbours let it do.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "kernels/kernels.h"
#include "kernels/norm.h"
#include "kernels/ref/norm.h"
#include "kernels/ref/ref.h"

namespace crema::kernels {
namespace {

using Floats = std::vector<float>;

Floats numbers(int64_t count, uint64_t seed) {
  RandomKey key;
  key.seed = seed;
  const RandomStream stream(key);
  Floats v(static_cast<size_t>(count));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(2 * stream.uniform(i) - 1);
  return v;
}

void expectNear(const std::string& what, const float* got, const Floats& want) {
  double largest = 0, error = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(want[i])));
    const double e = std::fabs(static_cast<double>(got[i]) - want[i]);
    error = std::isnan(e) ? INFINITY : std::max(error, e);
  }
  if (!(error <= 1e-4 * largest)) internal("{}: off by {} where the largest value is {}", what, error, largest);
}

// What update rules read of a solver.
struct SolverFields {
  float momentum() const { return 0.9f; }
  float momentum2() const { return 0.99f; }
  float rms_decay() const { return 0.98f; }
  float delta() const { return 1e-3f; }
};

class Bench {
 public:
  Bench(const Isa& isa, int threads, int repetitions) : context_(isa, threads), repetitions_(repetitions) {}

  void conv(const char* name, const ConvShape& s, bool toData) {
    const int64_t in = int64_t{s.ic} * s.h * s.w, out = int64_t{s.oc} * s.oh() * s.ow();
    const Floats x = numbers(s.n * in, 1), w = numbers(int64_t{s.oc} * (s.ic / s.groups) * s.kh * s.kw, 2),
                 b = numbers(s.oc, 3);
    const Floats dy = numbers(s.n * out, 4);
    Floats y(dy.size()), dx(x.size()), dw(w.size()), db(b.size());
    ConvShape one = s;  // images do not meet in these two passes: the last one tells
    one.n = 1;
    const int64_t last = s.n - 1;
    const double flops = 2.0 * s.n * static_cast<double>(out) * (s.ic / s.groups) * s.kh * s.kw;
    time(
        name, "forward", flops, [&] { convForward(context_, s, x.data(), w.data(), b.data(), y.data()); },
        y.data() + last * out, out,
        [&](float* want) { ref::convForward(one, x.data() + last * in, w.data(), b.data(), want); });
    if (toData)
      time(
          name, "to data", flops, [&] { convBackwardData(context_, s, dy.data(), w.data(), dx.data()); },
          dx.data() + last * in, in,
          [&](float* want) { ref::convBackwardData(one, dy.data() + last * out, w.data(), want); });
    time(
        name, "weights", flops, [&] { convBackwardWeights(context_, s, x.data(), dy.data(), dw.data(), false); }, dw,
        [&](float* want) { ref::convBackwardWeights(s, x.data(), dy.data(), want, false); });
    time(
        name, "bias", 0, [&] { convBackwardBias(context_, s, dy.data(), db.data(), false); }, db,
        [&](float* want) { ref::convBackwardBias(s, dy.data(), want, false); });
  }

  void innerProduct(const char* name, const IpShape& s) {
    const Floats x = numbers(int64_t{s.n} * s.in, 1), w = numbers(int64_t{s.in} * s.out, 2), b = numbers(s.out, 3);
    const Floats dy = numbers(int64_t{s.n} * s.out, 4);
    Floats y(dy.size()), dx(x.size()), dw(w.size());
    const double flops = 2.0 * s.n * s.in * s.out;
    time(
        name, "forward", flops, [&] { ipForward(context_, s, x.data(), w.data(), b.data(), y.data()); }, y,
        [&](float* want) { ref::ipForward(s, x.data(), w.data(), b.data(), want); });
    time(
        name, "to data", flops, [&] { ipBackwardData(context_, s, dy.data(), w.data(), dx.data()); }, dx,
        [&](float* want) { ref::ipBackwardData(s, dy.data(), w.data(), want); });
    time(
        name, "weights", flops, [&] { ipBackwardWeights(context_, s, x.data(), dy.data(), dw.data(), false); }, dw,
        [&](float* want) { ref::ipBackwardWeights(s, x.data(), dy.data(), want, false); });
  }

  void pool(const char* name, const PoolShape& s, bool average) {
    const Floats x = numbers(int64_t{s.n} * s.c * s.h * s.w, 1), dy = numbers(int64_t{s.n} * s.c * s.oh * s.ow, 2);
    Floats y(dy.size()), dx(x.size());
    std::vector<int32_t> mask(dy.size());
    if (average) {
      time(
          name, "forward", 0, [&] { avePoolForward(context_, s, x.data(), y.data()); }, y,
          [&](float* want) { ref::avePoolForward(s, x.data(), want); });
      time(
          name, "to data", 0, [&] { avePoolBackward(context_, s, dy.data(), dx.data()); }, dx,
          [&](float* want) { ref::avePoolBackward(s, dy.data(), want); });
    } else {
      time(
          name, "forward", 0, [&] { maxPoolForward(context_, s, x.data(), y.data(), mask.data()); }, y,
          [&](float* want) { ref::maxPoolForward(s, x.data(), want, mask.data()); });
      time(
          name, "to data", 0, [&] { maxPoolBackward(context_, s, dy.data(), mask.data(), dx.data()); }, dx,
          [&](float* want) { ref::maxPoolBackward(s, dy.data(), mask.data(), want); });
    }
  }

  void relu(const char* name, int64_t count) {
    const Floats x = numbers(count, 1), dy = numbers(count, 2);
    Floats y(x.size());
    time(
        name, "forward", 0, [&] { reluForward(context_, count, 0.f, x.data(), y.data()); }, y,
        [&](float* want) {
          for (size_t i = 0; i < x.size(); ++i) want[i] = std::max(x[i], 0.f);
        });
    time(
        name, "to data", 0, [&] { reluBackward(context_, count, 0.f, x.data(), dy.data(), y.data()); }, y,
        [&](float* want) {
          for (size_t i = 0; i < x.size(); ++i) want[i] = x[i] > 0 ? dy[i] : 0.f;
        });
  }

  void lrn(const char* name, const LrnShape& s) {
    const int64_t count = int64_t{s.n} * s.c * s.hw;
    const Floats x = numbers(count, 1), dy = numbers(count, 2);
    Floats y(x.size()), dx(x.size());
    time(
        name, "forward", 0, [&] { lrnForward(context_, s, x.data(), y.data()); }, y,
        [&](float* want) { ref::lrnForward(s, x.data(), want); });
    time(
        name, "to data", 0, [&] { lrnBackward(context_, s, x.data(), dy.data(), dx.data()); }, dx,
        [&](float* want) { ref::lrnBackward(s, x.data(), dy.data(), want); });
  }

  // Normalised, scaled and rectified.
  void norm(const char* name, const ChannelShape& s) {
    const int64_t count = int64_t{s.outer} * s.channels * s.inner;
    const Floats x = numbers(count, 1), dy = numbers(count, 2), scale = numbers(s.channels, 3),
                 offset = numbers(s.channels, 4);
    const NormSteps<float> steps{.scaled = true, .rectified = true, .scale = scale.data(), .offset = offset.data()};
    std::vector<double> each(static_cast<size_t>(s.channels) * 5);
    const auto part = [&](int i) { return each.data() + int64_t{i} * s.channels; };
    const NormNumbers moments{part(0), part(1), part(2)};
    Floats y(x.size()), dx(x.size());
    time(
        name, "forward", 0, [&] { normForward(context_, s, 1e-5, x.data(), steps, y.data(), moments); }, y,
        [&](float* want) { ref::normForward(s, 1e-5, x.data(), steps, want, moments); });
    time(
        name, "backward", 0,
        [&] {
          normBackward(context_, s, x.data(), moments, steps, dy.data(), dx.data(), NormSums{part(3), part(4)});
        },
        dx,
        [&](float* want) {
          ref::normBackward(s, x.data(), moments, steps, dy.data(), want, NormSums{part(3), part(4)});
        });
  }

  template <class Rule>
  void update(const char* name, int64_t count) {
    const Update u{.rule = Rule(SolverFields(), 4), .rate = {.policy = 0.01}, .decay = 0.0005};
    const Floats diff = numbers(count, 1);
    const Floats before = numbers(count, 3), histories(static_cast<size_t>(Rule::kHistories * count), 0.5f);
    Floats here = histories, w = before;
    time(
        name, Rule::kType, 0, [&] { kernels::update(context_, count, u, diff.data(), here.data(), count, w.data()); },
        w,
        [&](float* want) {
          std::copy(before.begin(), before.end(), want);
          Floats there = histories;
          ref::update(count, u, diff.data(), there.data(), count, want);
        });
  }

  void total(const char* net) {
    std::printf("%-12s step                       %8.3f ms\n\n", net, total_);
    total_ = 0;
  }

 private:
  // What the first run has left in `got` is compared with what the reference writes, before any time is taken.
  using Reference = std::function<void(float* want)>;
  void time(const char* name, const char* pass, double flops, const std::function<void()>& run, const Floats& got,
            const Reference& reference) {
    time(name, pass, flops, run, got.data(), static_cast<int64_t>(got.size()), reference);
  }
  void time(const char* name, const char* pass, double flops, const std::function<void()>& run, const float* got,
            int64_t count, const Reference& reference) {
    run();
    Floats want(static_cast<size_t>(count));
    reference(want.data());
    expectNear(name, got, want);
    double best = INFINITY;
    for (int i = 0; i < repetitions_; ++i) {
      const auto from = std::chrono::steady_clock::now();
      run();
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - from;
      best = std::min(best, took.count());
    }
    std::printf("%-12s %-10s %8.3f ms", name, pass, best);
    if (flops > 0) std::printf("  %7.1f GFLOP/s", flops / best / 1e6);
    std::printf("\n");
    total_ += best;
  }

  Context context_;
  int repetitions_;
  double total_ = 0;
};

void lenet(Bench& b) {
  b.conv("conv1", {64, 1, 28, 28, 20, 5, 5}, false);
  b.pool("pool1", {64, 20, 24, 24, 12, 12, 2, 2, 2, 2}, false);
  b.conv("conv2", {64, 20, 12, 12, 50, 5, 5}, true);
  b.pool("pool2", {64, 50, 8, 8, 4, 4, 2, 2, 2, 2}, false);
  b.innerProduct("ip1", {64, 800, 500});
  b.relu("relu1", 64 * 500);
  b.innerProduct("ip2", {64, 500, 10});
  b.update<SGD>("update", 431080);
  b.total("LeNet");
}

void cifarQuick(Bench& b) {
  b.conv("conv1", {100, 3, 32, 32, 32, 5, 5, 1, 1, 2, 2}, false);
  b.pool("pool1", {100, 32, 32, 32, 16, 16, 3, 3, 2, 2}, false);
  b.relu("relu1", 100 * 32 * 256);
  b.conv("conv2", {100, 32, 16, 16, 32, 5, 5, 1, 1, 2, 2}, true);
  b.relu("relu2", 100 * 32 * 256);
  b.pool("pool2", {100, 32, 16, 16, 8, 8, 3, 3, 2, 2}, true);
  b.conv("conv3", {100, 32, 8, 8, 64, 5, 5, 1, 1, 2, 2}, true);
  b.relu("relu3", 100 * 64 * 64);
  b.pool("pool3", {100, 64, 8, 8, 4, 4, 3, 3, 2, 2}, true);
  b.innerProduct("ip1", {100, 1024, 64});
  b.innerProduct("ip2", {100, 64, 10});
  b.update<SGD>("update", 145578);
  b.total("CIFAR quick");
}

// Some of ResNet-50's convolutions for one image, as `crema time` and classifiers see them.
void resnetOne(Bench& b) {
  b.conv("conv1", {1, 3, 224, 224, 64, 7, 7, 2, 2, 3, 3}, true);
  b.conv("2b/2b", {1, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1}, true);
  b.conv("3a/1", {1, 256, 56, 56, 512, 1, 1, 2, 2}, true);
  b.conv("4b/2a", {1, 1024, 14, 14, 256, 1, 1}, true);
  b.conv("4b/2b", {1, 256, 14, 14, 256, 3, 3, 1, 1, 1, 1}, true);
  b.conv("5b/2b", {1, 512, 7, 7, 512, 3, 3, 1, 1, 1, 1}, true);
  b.conv("5b/2c", {1, 512, 7, 7, 2048, 1, 1}, true);
  b.total("of ResNet-50");
}

// Its convolutions of 1 x 1 for 16 images, as in a training step.
void resnetSixteen(Bench& b) {
  b.conv("2a/1", {16, 64, 56, 56, 256, 1, 1}, true);
  b.conv("2b/2a", {16, 256, 56, 56, 64, 1, 1}, true);
  b.conv("3a/1", {16, 256, 56, 56, 512, 1, 1, 2, 2}, true);
  b.conv("3b/2a", {16, 512, 28, 28, 128, 1, 1}, true);
  b.conv("3b/2c", {16, 128, 28, 28, 512, 1, 1}, true);
  b.conv("4b/2a", {16, 1024, 14, 14, 256, 1, 1}, true);
  b.conv("4b/2c", {16, 256, 14, 14, 1024, 1, 1}, true);
  b.conv("5a/1", {16, 1024, 14, 14, 2048, 1, 1, 2, 2}, true);
  b.conv("5b/2a", {16, 2048, 7, 7, 512, 1, 1}, true);
  b.conv("5b/2c", {16, 512, 7, 7, 2048, 1, 1}, true);
  b.total("1 x 1");
}

// Batch normalisation of ResNet-50, 16 images, and MobileNet, 32.
void norms(Bench& b) {
  b.norm("res 1", {16, 64, 112 * 112});
  b.norm("res 2a/1", {16, 256, 56 * 56});
  b.norm("res 3b/2c", {16, 512, 28 * 28});
  b.norm("mobile 8", {32, 512, 14 * 14});
  b.norm("mobile 14", {32, 1024, 7 * 7});
  b.total("norms");
}

// MobileNet's pairs of a filter for each channel and 1 x 1, for two images.
void mobilenetTwo(Bench& b) {
  b.conv("conv2_2/dw", {2, 64, 112, 112, 64, 3, 3, 2, 2, 1, 1, 1, 1, 64}, true);
  b.conv("conv2_2/sep", {2, 64, 56, 56, 128, 1, 1}, true);
  b.conv("conv5_1/dw", {2, 512, 14, 14, 512, 3, 3, 1, 1, 1, 1, 1, 1, 512}, true);
  b.conv("conv5_1/sep", {2, 512, 14, 14, 512, 1, 1}, true);
  b.conv("conv6/dw", {2, 1024, 7, 7, 1024, 3, 3, 1, 1, 1, 1, 1, 1, 1024}, true);
  b.total("of MobileNet");
}

// The same for a batch of training, a filter for each channel.
void depthwise(Bench& b) {
  b.conv("conv2_1/dw", {32, 32, 112, 112, 32, 3, 3, 1, 1, 1, 1, 1, 1, 32}, true);
  b.conv("conv2_2/dw", {32, 64, 112, 112, 64, 3, 3, 2, 2, 1, 1, 1, 1, 64}, true);
  b.conv("conv4_2/dw", {32, 256, 28, 28, 256, 3, 3, 2, 2, 1, 1, 1, 1, 256}, true);
  b.conv("conv5_1/dw", {32, 512, 14, 14, 512, 3, 3, 1, 1, 1, 1, 1, 1, 512}, true);
  b.conv("conv6/dw", {32, 1024, 7, 7, 1024, 3, 3, 1, 1, 1, 1, 1, 1, 1024}, true);
  b.total("depthwise");
}

// What minimal filtering computes, and of five taps what it leaves to the direct kernels, for eight images; GFLOP/s of the
// direct products.
void filtered(Bench& b) {
  b.conv("alex conv3", {8, 256, 13, 13, 384, 3, 3, 1, 1, 1, 1}, true);
  b.conv("goog 3b/3x3", {8, 128, 28, 28, 192, 3, 3, 1, 1, 1, 1}, true);
  b.conv("goog 3b/5x5", {8, 32, 28, 28, 96, 5, 5, 1, 1, 2, 2}, true);
  b.conv("alex conv2", {8, 96, 27, 27, 256, 5, 5, 1, 1, 2, 2, 1, 1, 2}, true);
  b.conv("goog 4c/5x5", {8, 24, 14, 14, 64, 5, 5, 1, 1, 2, 2}, true);
  b.conv("goog 5b/5x5", {8, 48, 14, 14, 128, 5, 5, 1, 1, 2, 2}, true);
  b.conv("goog 4e/5x5", {8, 32, 14, 14, 128, 5, 5, 1, 1, 2, 2}, true);
  b.conv("goog 5b/3x3", {8, 192, 7, 7, 384, 3, 3, 1, 1, 1, 1}, true);
  b.conv("res 2b/2b", {8, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1}, true);
  b.conv("res 3b/2b", {8, 128, 28, 28, 128, 3, 3, 1, 1, 1, 1}, true);
  b.conv("res 4b/2b", {8, 256, 14, 14, 256, 3, 3, 1, 1, 1, 1}, true);
  b.conv("res 5b/2b", {8, 512, 7, 7, 512, 3, 3, 1, 1, 1, 1}, true);
  b.total("filtered");
}

// AlexNet's inner products for one picture, which read 235 MB of weights.
void alexnetOne(Bench& b) {
  b.innerProduct("fc6", {1, 9216, 4096});
  b.innerProduct("fc7", {1, 4096, 4096});
  b.innerProduct("fc8", {1, 4096, 1000});
  b.total("of AlexNet");
}

void lrns(Bench& b) {
  b.lrn("norm1", {8, 96, 55 * 55, 5, 1e-4, 0.75, 1});
  b.lrn("norm2", {8, 256, 27 * 27, 5, 1e-4, 0.75, 1});
  b.total("of AlexNet");
}

// LeNet's weights by every rule.
void updates(Bench& b) {
  UpdateRules::each([&]<class Rule>() { b.update<Rule>("update", 431080); });
  b.total("update rules");
}

}  // namespace
}  // namespace crema::kernels

int main(int argc, char** argv) {
  using namespace crema::kernels;
  try {
    const Isa& isa = chooseIsa(argc > 1 ? argv[1] : "");
    const int threads = argc > 2 ? std::atoi(argv[2]) : 1, repetitions = argc > 3 ? std::atoi(argv[3]) : 50;
    std::printf("%s, %d thread(s), best of %d\n\n", name(isa), threads, repetitions);
    Bench bench(isa, std::max(1, threads), std::max(1, repetitions));
    const std::set<std::string> wanted(argv + std::min(argc, 4), argv + argc);
    const std::pair<const char*, void (*)(Bench&)> parts[] = {{"lenet", lenet},
                                                              {"quick", cifarQuick},
                                                              {"resnet1", resnetOne},
                                                              {"resnet16", resnetSixteen},
                                                              {"mobilenet2", mobilenetTwo},
                                                              {"depthwise", depthwise},
                                                              {"norms", norms},
                                                              {"filtered", filtered},
                                                              {"alexnet1", alexnetOne},
                                                              {"lrn", lrns},
                                                              {"updates", updates}};
    for (const std::string& part : wanted)
      if (std::none_of(std::begin(parts), std::end(parts), [&](const auto& p) { return p.first == part; }))
        crema::invalid("no part has the name {}", part);
    for (const auto& [part, run] : parts)
      if (wanted.empty() || wanted.count(part)) run(bench);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kernels_bench: %s\n", e.what());
    return 1;
  }
}
