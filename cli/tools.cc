// crema device_query, convert_mnist_data, convert_cifar_data.
#include <cstdio>

#include "base/error.h"
#include "base/temporary.h"
#include "base/thread_pool.h"
#include "cli/command.h"
#include "data/cifar.h"
#include "data/idx.h"
#include "kernels/context.h"

namespace crema::cli {

void addDeviceQuery(CLI::App& program, Run& chosen) {
  addCommand(
      program, "device_query", "what this machine computes with",
      [](CLI::App& app) -> Run {
        auto gpu = std::make_shared<std::string>();
        app.add_option("--gpu", *gpu, "refused: this executable computes on the CPU");
        return [gpu] {
          refuseGpu(*gpu);
          std::printf("CPU: %s kernels, %d core(s) for this process\n", kernels::name(kernels::bestIsa()),
                      availableCores());
          return 0;
        };
      },
      chosen);
}

void addConvertMnistData(CLI::App& program, Run& chosen) {
  addCommand(
      program, "convert_mnist_data", "MNIST's idx files as a database",
      [](CLI::App& app) -> Run {
        struct Flags {
          std::string images, labels, database, backend = "lmdb";
        };
        auto f = std::make_shared<Flags>();
        app.add_option("images", f->images, "idx file of images, not compressed")->required();
        app.add_option("labels", f->labels, "idx file of labels, not compressed")->required();
        app.add_option("database", f->database, "the database to make")->required();
        app.add_option("--backend", f->backend, "lmdb or leveldb")->capture_default_str();
        return [f] {
          clearOnSignals();
          std::printf("Processed %lld files.\n",
                      static_cast<long long>(data::convertMnist(f->images, f->labels, f->database, f->backend)));
          return 0;
        };
      },
      chosen);
}

void addConvertCifarData(CLI::App& program, Run& chosen) {
  addCommand(
      program, "convert_cifar_data", "CIFAR-10's binary batches as two databases",
      [](CLI::App& app) -> Run {
        struct Flags {
          std::string input, output, backend;
        };
        auto f = std::make_shared<Flags>();
        app.add_option("input", f->input, "the folder with data_batch_1.bin to data_batch_5.bin and test_batch.bin")
            ->required();
        app.add_option("output", f->output, "the folder for cifar10_train_BACKEND and cifar10_test_BACKEND")
            ->required();
        app.add_option("backend", f->backend, "lmdb or leveldb")->required();
        return [f] {
          clearOnSignals();
          const data::CifarCounts n = data::convertCifar(f->input, f->output, f->backend);
          std::printf("Processed %lld training and %lld test records.\n", static_cast<long long>(n.train),
                      static_cast<long long>(n.test));
          return 0;
        };
      },
      chosen);
}

}  // namespace crema::cli
