// Milliseconds per kernel call for layers of well-known nets, and their sums; of LeNet (64 images) and CIFAR-10 quick (100
// images) that is the arithmetic of one training step. What each call is timed for, its main output, is compared with the reference loops; a wrong one ends
// the program with exit code 1, and so does a kernel that no part times.
//
//   kernels_bench [instruction set, as -isa takes it] [threads] [repetitions] [part ...]
//
// Parts: lenet, quick, resnet1, resnet16, scored, mobilenet2, depthwise, norms, filtered, alexnet1, lrn, updates, left, rest; all when
// none is named. Times are the best of the repetitions: what the machine can do, not what its neighbours let it do.
#include <cstdlib>
#include <exception>
#include <utility>

#include "passes.h"
#include "products.h"

namespace crema::kernels::bench {
namespace {

void lenet(Bench& b) {
  conv(b, "conv1", {64, 1, 28, 28, 20, 5, 5}, false);
  maxPool(b, "pool1", {64, 20, 24, 24, 12, 12, 2, 2, 2, 2});
  conv(b, "conv2", {64, 20, 12, 12, 50, 5, 5}, true);
  maxPool(b, "pool2", {64, 50, 8, 8, 4, 4, 2, 2, 2, 2});
  innerProduct(b, "ip1", {64, 800, 500});
  relu(b, "relu1", 64 * 500);
  innerProduct(b, "ip2", {64, 500, 10});
  update<SGD>(b, "update", 431080);
  b.total("LeNet");
}

void cifarQuick(Bench& b) {
  conv(b, "conv1", {100, 3, 32, 32, 32, 5, 5, 1, 1, 2, 2}, false);
  maxPool(b, "pool1", {100, 32, 32, 32, 16, 16, 3, 3, 2, 2});
  relu(b, "relu1", 100 * 32 * 256);
  conv(b, "conv2", {100, 32, 16, 16, 32, 5, 5, 1, 1, 2, 2}, true);
  relu(b, "relu2", 100 * 32 * 256);
  averagePool(b, "pool2", {100, 32, 16, 16, 8, 8, 3, 3, 2, 2});
  conv(b, "conv3", {100, 32, 8, 8, 64, 5, 5, 1, 1, 2, 2}, true);
  relu(b, "relu3", 100 * 64 * 64);
  averagePool(b, "pool3", {100, 64, 8, 8, 4, 4, 3, 3, 2, 2});
  innerProduct(b, "ip1", {100, 1024, 64});
  innerProduct(b, "ip2", {100, 64, 10});
  update<SGD>(b, "update", 145578);
  b.total("CIFAR quick");
}

// Some of ResNet-50's convolutions for one image, as `crema time` and classifiers see them.
void resnetOne(Bench& b) {
  conv(b, "conv1", {1, 3, 224, 224, 64, 7, 7, 2, 2, 3, 3}, true);
  conv(b, "2b/2b", {1, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1}, true);
  conv(b, "3a/1", {1, 256, 56, 56, 512, 1, 1, 2, 2}, true);
  conv(b, "4b/2a", {1, 1024, 14, 14, 256, 1, 1}, true);
  conv(b, "4b/2b", {1, 256, 14, 14, 256, 3, 3, 1, 1, 1, 1}, true);
  conv(b, "5b/2b", {1, 512, 7, 7, 512, 3, 3, 1, 1, 1, 1}, true);
  conv(b, "5b/2c", {1, 512, 7, 7, 2048, 1, 1}, true);
  b.total("of ResNet-50");
}

// Its convolutions of 1 x 1 for 16 images, as in a training step.
void resnetSixteen(Bench& b) {
  conv(b, "2a/1", {16, 64, 56, 56, 256, 1, 1}, true);
  conv(b, "2b/2a", {16, 256, 56, 56, 64, 1, 1}, true);
  conv(b, "3a/1", {16, 256, 56, 56, 512, 1, 1, 2, 2}, true);
  conv(b, "3b/2a", {16, 512, 28, 28, 128, 1, 1}, true);
  conv(b, "3b/2c", {16, 128, 28, 28, 512, 1, 1}, true);
  conv(b, "4b/2a", {16, 1024, 14, 14, 256, 1, 1}, true);
  conv(b, "4b/2c", {16, 256, 14, 14, 1024, 1, 1}, true);
  conv(b, "5a/1", {16, 1024, 14, 14, 2048, 1, 1, 2, 2}, true);
  conv(b, "5b/2a", {16, 2048, 7, 7, 512, 1, 1}, true);
  conv(b, "5b/2c", {16, 512, 7, 7, 2048, 1, 1}, true);
  b.total("1 x 1");
}

// One picture as a scoring plan computes it: all kinds of layers of GoogLeNet, ResNet-50 and MobileNet.
void scored(Bench& b) {
  scoredConv(b, "res conv1", {1, 3, 224, 224, 64, 7, 7, 2, 2, 3, 3});
  scoredConv(b, "res 2b/2b", {1, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1});
  scoredConv(b, "res 2b/2c", {1, 64, 56, 56, 256, 1, 1});
  scoredConv(b, "res 3a/1", {1, 256, 56, 56, 512, 1, 1, 2, 2});
  scoredConv(b, "res 3b/2b", {1, 128, 28, 28, 128, 3, 3, 1, 1, 1, 1});
  scoredConv(b, "res 3b/2a", {1, 512, 28, 28, 128, 1, 1});
  scoredConv(b, "res 4b/2b", {1, 256, 14, 14, 256, 3, 3, 1, 1, 1, 1});
  scoredConv(b, "res 4b/2a", {1, 1024, 14, 14, 256, 1, 1});
  scoredConv(b, "res 5b/2b", {1, 512, 7, 7, 512, 3, 3, 1, 1, 1, 1});
  scoredConv(b, "res 5b/2c", {1, 512, 7, 7, 2048, 1, 1});
  scoredConv(b, "goog 3b/3x3", {1, 128, 28, 28, 192, 3, 3, 1, 1, 1, 1});
  scoredConv(b, "goog 3b/5x5", {1, 32, 28, 28, 96, 5, 5, 1, 1, 2, 2});
  scoredConv(b, "goog 4e/5x5", {1, 32, 14, 14, 128, 5, 5, 1, 1, 2, 2});
  scoredConv(b, "mobile 5/dw", {1, 512, 14, 14, 512, 3, 3, 1, 1, 1, 1, 1, 1, 512});
  b.total("scored");
}

// Batch normalisation of ResNet-50, 16 images, and MobileNet, 32.
void norms(Bench& b) {
  norm(b, "res 1", {16, 64, 112 * 112});
  norm(b, "res 2a/1", {16, 256, 56 * 56});
  norm(b, "res 3b/2c", {16, 512, 28 * 28});
  norm(b, "mobile 8", {32, 512, 14 * 14});
  norm(b, "mobile 14", {32, 1024, 7 * 7});
  b.total("norms");
}

// MobileNet's pairs of a filter for each channel and 1 x 1, for two images.
void mobilenetTwo(Bench& b) {
  conv(b, "conv2_2/dw", {2, 64, 112, 112, 64, 3, 3, 2, 2, 1, 1, 1, 1, 64}, true);
  conv(b, "conv2_2/sep", {2, 64, 56, 56, 128, 1, 1}, true);
  conv(b, "conv5_1/dw", {2, 512, 14, 14, 512, 3, 3, 1, 1, 1, 1, 1, 1, 512}, true);
  conv(b, "conv5_1/sep", {2, 512, 14, 14, 512, 1, 1}, true);
  conv(b, "conv6/dw", {2, 1024, 7, 7, 1024, 3, 3, 1, 1, 1, 1, 1, 1, 1024}, true);
  b.total("of MobileNet");
}

// The same for a batch of training, a filter for each channel.
void depthwise(Bench& b) {
  conv(b, "conv2_1/dw", {32, 32, 112, 112, 32, 3, 3, 1, 1, 1, 1, 1, 1, 32}, true);
  conv(b, "conv2_2/dw", {32, 64, 112, 112, 64, 3, 3, 2, 2, 1, 1, 1, 1, 64}, true);
  conv(b, "conv4_2/dw", {32, 256, 28, 28, 256, 3, 3, 2, 2, 1, 1, 1, 1, 256}, true);
  conv(b, "conv5_1/dw", {32, 512, 14, 14, 512, 3, 3, 1, 1, 1, 1, 1, 1, 512}, true);
  conv(b, "conv6/dw", {32, 1024, 7, 7, 1024, 3, 3, 1, 1, 1, 1, 1, 1, 1024}, true);
  b.total("depthwise");
}

// What minimal filtering computes, for eight images; GFLOP/s of the direct products.
void filtered(Bench& b) {
  conv(b, "alex conv3", {8, 256, 13, 13, 384, 3, 3, 1, 1, 1, 1}, true);
  conv(b, "goog 3b/3x3", {8, 128, 28, 28, 192, 3, 3, 1, 1, 1, 1}, true);
  conv(b, "goog 3b/5x5", {8, 32, 28, 28, 96, 5, 5, 1, 1, 2, 2}, true);
  conv(b, "alex conv2", {8, 96, 27, 27, 256, 5, 5, 1, 1, 2, 2, 1, 1, 2}, true);
  conv(b, "goog 3a/5x5", {8, 16, 28, 28, 32, 5, 5, 1, 1, 2, 2}, true);
  conv(b, "goog 4a/5x5", {8, 16, 14, 14, 48, 5, 5, 1, 1, 2, 2}, true);
  conv(b, "goog 4c/5x5", {8, 24, 14, 14, 64, 5, 5, 1, 1, 2, 2}, true);
  conv(b, "goog 5b/5x5", {8, 48, 14, 14, 128, 5, 5, 1, 1, 2, 2}, true);
  conv(b, "goog 4e/5x5", {8, 32, 14, 14, 128, 5, 5, 1, 1, 2, 2}, true);
  conv(b, "5x5, no padding", {8, 64, 28, 28, 64, 5, 5}, true);
  conv(b, "3x3, no padding", {8, 512, 13, 13, 512, 3, 3}, true);
  conv(b, "goog 5b/3x3", {8, 192, 7, 7, 384, 3, 3, 1, 1, 1, 1}, true);
  conv(b, "res 2b/2b", {8, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1}, true);
  conv(b, "res 3b/2b", {8, 128, 28, 28, 128, 3, 3, 1, 1, 1, 1}, true);
  conv(b, "res 4b/2b", {8, 256, 14, 14, 256, 3, 3, 1, 1, 1, 1}, true);
  conv(b, "res 5b/2b", {8, 512, 7, 7, 512, 3, 3, 1, 1, 1, 1}, true);
  b.total("filtered");
}

// AlexNet's inner products for one picture, which read 235 MB of weights.
void alexnetOne(Bench& b) {
  innerProduct(b, "fc6", {1, 9216, 4096});
  innerProduct(b, "fc7", {1, 4096, 4096});
  innerProduct(b, "fc8", {1, 4096, 1000});
  b.total("of AlexNet");
}

void lrns(Bench& b) {
  lrn(b, "norm1", {8, 96, 55 * 55, 5, 1e-4, 0.75, 1});
  lrn(b, "norm2", {8, 256, 27 * 27, 5, 1e-4, 0.75, 1});
  lrnWithin(b, "within", {8, 32, 16, 16, 3, 5e-5, 0.75});
  b.total("of AlexNet");
}

// LeNet's weights by every rule.
void updates(Bench& b) {
  UpdateRules::each([&]<class Rule>() { update<Rule>(b, Rule::kType, 431080); });
  b.total("update rules");
}

// Inner products whose gradient has no memory: LeNet's, and CaffeNet's of one rank and of two.
void left(Bench& b) {
  innerProductUpdate(b, "lenet ip1", {64, 800, 500}, 1);
  innerProductUpdate(b, "caffe fc6", {32, 9216, 4096}, 1);
  innerProductUpdate(b, "caffe fc7", {32, 4096, 4096}, 2);
  b.total("left");
}

// Element by element and sums: a residual block's end, ResNet-50's weights for clipping, probabilities of 1,000 classes.
void rest(Bench& b) {
  elements(b, "res 2a", 16 * 256 * 56 * 56);
  reductions(b, "res 4b/2b", 256 * 256 * 9);
  channels(b, "mobile 8", {32, 512, 14 * 14});
  softmaxes(b, "prob", 32, 1000, 1);
  softmaxes(b, "prob 28x28", 8, 21, 28 * 28);
  b.total("rest");
}

using Part = std::pair<const char*, void (*)(Bench&)>;
constexpr Part kParts[] = {{"lenet", lenet},
                           {"quick", cifarQuick},
                           {"resnet1", resnetOne},
                           {"resnet16", resnetSixteen},
                           {"scored", scored},
                           {"mobilenet2", mobilenetTwo},
                           {"depthwise", depthwise},
                           {"norms", norms},
                           {"filtered", filtered},
                           {"alexnet1", alexnetOne},
                           {"lrn", lrns},
                           {"updates", updates},
                           {"left", left},
                           {"rest", rest}};

void run(Bench& bench, const std::set<std::string>& wanted) {
  for (const std::string& part : wanted)
    if (std::none_of(std::begin(kParts), std::end(kParts), [&](const Part& p) { return p.first == part; }))
      invalid("no part has the name {}", part);
  for (const auto& [part, each] : kParts)
    if (wanted.empty() || wanted.count(part)) each(bench);
  if (!wanted.empty()) return;
  std::set<std::string> kernels = {"softmax", "sumOfSquares", "dot"};
#define CREMA_NAME(NAME) kernels.insert(#NAME);
  CREMA_KERNELS(CREMA_NAME)
#undef CREMA_NAME
  kernels.erase("fullSpeed");  // computes nothing
  for (const std::string& kernel : kernels)
    if (!bench.timed().count(kernel)) internal("no part times {}", kernel);
}

}  // namespace
}  // namespace crema::kernels::bench

int main(int argc, char** argv) {
  using namespace crema::kernels;
  try {
    const Isa& isa = chooseIsa(argc > 1 ? argv[1] : "");
    const int threads = argc > 2 ? std::atoi(argv[2]) : 1, repetitions = argc > 3 ? std::atoi(argv[3]) : 50;
    std::printf("%s, %d thread(s), best of %d\n\n", name(isa), threads, repetitions);
    bench::Bench timer(isa, std::max(1, threads), std::max(1, repetitions));
    bench::run(timer, {argv + std::min(argc, 4), argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "kernels_bench: %s\n", e.what());
    return 1;
  }
}
