// Writes the final model that worker 0 sends in pieces to the coordinator's disk (model_home in wire.Job).
#pragma once
#include <memory>
#include <string>

#include "base/new_file.h"
#include "control.pb.h"

namespace crema::worker {

class ModelHome {
 public:
  explicit ModelHome(std::string path) : path_(std::move(path)) {}
  // Writes the next piece; true when the file is complete at its path. Throws, with the remark that the model is not
  // saved: kIo with path and cause, kPeer when size or sender is not what was announced.
  [[nodiscard]] bool take(const control::ToCoordinator::Piece& piece, const std::string& sender);
  // The error of a take() that does not return; from any thread.
  std::string unsaved(double seconds) const;

 private:
  const std::string path_;
  std::unique_ptr<NewFile> file_;  // null until the first piece and after the last
};

}  // namespace crema::worker
