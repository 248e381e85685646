// crema compute_image_mean: the mean of a database's images, for mean_file and mean_value.
#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "data/imageset.h"
#include "data/record_writer.h"
#include "model/proto_io.h"

namespace crema::cli {
namespace {

void logChannels(const caffe::BlobProto& mean) {
  const int plane = mean.height() * mean.width();
  LOG_INFO("Number of channels: {}", mean.channels());
  for (int c = 0; c < mean.channels(); ++c) {
    double sum = 0;
    for (int i = 0; i < plane; ++i) sum += mean.data(plane * c + i);
    LOG_INFO("mean_value channel [{}]: {:.6g}", c, sum / plane);
  }
}

}  // namespace

void addComputeImageMean(CLI::App& program, Run& chosen) {
  addCommand(
      program, "compute_image_mean", "the mean image of a database: [FLAGS] INPUT_DB [OUTPUT_FILE]",
      [](CLI::App& app) -> Run {
        struct Flags {
          std::vector<std::string> files;
          std::string backend = "lmdb";
        };
        auto f = std::make_shared<Flags>();
        app.add_option("files", f->files, "the database; the mean file to write (binaryproto)");
        app.add_option("--backend", f->backend, "lmdb or leveldb")->capture_default_str();
        return [f] {
          if (f->files.empty() || f->files.size() > 2) {
            LOG_ERROR("Usage: compute_image_mean [FLAGS] INPUT_DB [OUTPUT_FILE]");
            return 1;
          }
          const caffe::BlobProto mean = data::meanOf(*data::openSource(data::parseBackend(f->backend), f->files[0]));
          if (f->files.size() == 2) {
            LOG_INFO("Write to {}", f->files[1]);
            model::writeBinary(f->files[1], mean);
          }
          logChannels(mean);
          return 0;
        };
      },
      chosen);
}

}  // namespace crema::cli
