// crema device_query, convert_mnist_data, and the names of Caffe's tools that are not here yet.
#include <cstdio>

#include "base/error.h"
#include "base/thread_pool.h"
#include "cli/command.h"
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
      program, "convert_mnist_data", "MNIST's idx files as an LMDB",
      [](CLI::App& app) -> Run {
        struct Flags {
          std::string images, labels, database, backend = "lmdb";
        };
        auto f = std::make_shared<Flags>();
        app.add_option("images", f->images, "idx file of images, not compressed")->required();
        app.add_option("labels", f->labels, "idx file of labels, not compressed")->required();
        app.add_option("database", f->database, "the LMDB to make")->required();
        app.add_option("--backend", f->backend, "lmdb")->capture_default_str();
        return [f] {
          if (f->backend != "lmdb") invalid("-backend {}: this version writes lmdb", f->backend);
          std::printf("Processed %lld files.\n",
                      static_cast<long long>(convertMnist(f->images, f->labels, f->database)));
          return 0;
        };
      },
      chosen);
}

void addLaterTools(CLI::App& program, Run& chosen) {
  for (const char* name : {"convert_cifar_data"}) {
    addCommand(
        program, name, "Caffe's tool of this name: not in this version",
        [name](CLI::App& app) -> Run {
          app.allow_extras();
          app.prefix_command();
          return [name]() -> int {
            invalid("{} is not in this version of crema; use Caffe's own tool, its files are read here as they are",
                    name);
          };
        },
        chosen);
  }
}

}  // namespace crema::cli
