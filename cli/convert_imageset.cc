// crema convert_imageset: files that a list names as a database, with Caffe's flags.
#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/temporary.h"
#include "cli/command.h"
#include "data/imageset.h"
#include "data/record_writer.h"

namespace crema::cli {

void addConvertImageset(CLI::App& program, Run& chosen) {
  addCommand(
      program, "convert_imageset", "images that a list names as a database: [FLAGS] ROOTFOLDER/ LISTFILE DB_NAME",
      [](CLI::App& app) -> Run {
        struct Flags {
          std::vector<std::string> files;
          std::string backend = "lmdb";
          data::ImagesetOptions o;
        };
        auto f = std::make_shared<Flags>();
        app.add_option("files", f->files,
                       "ROOTFOLDER/, written before every path as it is; LISTFILE of `path label`; "
                       "the database to make");
        app.add_flag("--gray,!--nogray", f->o.grey, "treat images as grayscale ones");
        app.add_flag("--shuffle,!--noshuffle", f->o.shuffle, "shuffle the order of images and their labels");
        app.add_option("--random_seed", f->o.seed, "names the order of -shuffle")->capture_default_str();
        app.add_option("--backend", f->backend, "lmdb or leveldb")->capture_default_str();
        app.add_option("--resize_width", f->o.width, "width images are resized to")->capture_default_str();
        app.add_option("--resize_height", f->o.height, "height images are resized to")->capture_default_str();
        app.add_flag("--check_size,!--nocheck_size", f->o.checkSize, "check that all images have the same size");
        app.add_flag("--encoded,!--noencoded", f->o.encoded, "keep images encoded");
        app.add_option("--encode_type", f->o.encodeType, "how: png or jpg; empty: as the file's name ends");
        return [f] {
          if (f->files.size() < 3) {
            LOG_ERROR("Usage: convert_imageset [FLAGS] ROOTFOLDER/ LISTFILE DB_NAME");
            return 1;
          }
          f->o.root = f->files[0], f->o.list = f->files[1], f->o.database = f->files[2];
          f->o.backend = data::parseBackend(f->backend);
          constexpr int kMostSide = 1 << 16;
          f->o.height = std::max(0, f->o.height), f->o.width = std::max(0, f->o.width);
          if (std::max(f->o.height, f->o.width) > kMostSide)
            invalid("-resize_height {} -resize_width {}: at most {}", f->o.height, f->o.width, kMostSide);
          clearOnSignals();
          data::convertImageset(f->o);
          return 0;
        };
      },
      chosen);
}

}  // namespace crema::cli
