// The final model on its way from worker 0 to the coordinator's disk, piece by piece (wire.Job's model_home).
#pragma once
#include <memory>
#include <string>

#include "base/new_file.h"
#include "control.pb.h"

namespace crema::cluster {

class ModelHome {
 public:
  explicit ModelHome(std::string path) : path_(std::move(path)) {}
  // The next piece; true when the file is whole and in its place. Throws, saying that the model is not saved: kIo
  // with the path and why, kPeer when what came is not what was announced.
  bool take(const control::ToCoordinator::Piece& piece, const std::string& sender);

 private:
  std::string path_;
  std::unique_ptr<NewFile> file_;  // while it comes
};

}  // namespace crema::cluster
