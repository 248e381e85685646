#include "worker/model_home.h"

#include "base/error.h"

namespace crema::worker {
namespace {

std::string unsavedAs(const std::string& why) {
  return fmt::format(
      "the model is trained and not saved: {}. Mend that or name another place with -model, and run again", why);
}

}  // namespace

bool ModelHome::take(const control::ToCoordinator::Piece& piece, const std::string& sender) {
  try {
    if (path_.empty()) throw Error(ErrorKind::kPeer, fmt::format("{} sent a model that was not asked for", sender));
    if (piece.first()) file_.reset();
    if (!file_) file_ = std::make_unique<NewFile>(path_);
    file_->write(piece.data());
    if (!piece.has_size()) return false;
    if (file_->size() != piece.size())
      throw Error(ErrorKind::kPeer,
                  fmt::format("{} sent {} bytes of a model of {}", sender, file_->size(), piece.size()));
    file_->commit();
    file_.reset();
    return true;
  } catch (const Error& e) {
    file_.reset();
    throw Error(e.kind(), unsavedAs(e.what()));
  }
}

std::string ModelHome::unsaved(double seconds) const {
  return unsavedAs(
      fmt::format("nothing could be written to {} for {:.0f} s, as its file system does not answer", path_, seconds));
}

}  // namespace crema::worker
