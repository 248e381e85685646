// Writes the pieces of a file that members send, in a thread of its own: a disk may stand still for minutes, in which the
// coordinator's thread must say each second that it is there. Members send no further than kAhead beyond what is written
// (Session::sendModel()), which bounds what waits here.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "cluster/channel.h"
#include "control.pb.h"

namespace crema::cluster {

class Pieces {
 public:
  static constexpr size_t kAhead = size_t{16} << 20;
  using Piece = control::ToCoordinator::Piece;
  // take: Work::take(); called in that thread, with one piece after the other. post: brings what take threw to the thread
  // of run(), as a call that throws it; never waits.
  Pieces(std::function<bool(const Piece&, const std::string& sender)> take,
         std::function<void(std::function<void()>)> post);
  // Takes no further piece. One that is being written has patience::kAbort; then its thread, whose system call may not
  // return for hours, is left alone with take, and with nothing else of this object's owner.
  ~Pieces();
  Pieces(const Pieces&) = delete;

  // The sender hears Kept when it is written.
  void add(std::shared_ptr<Channel> from, Piece piece, std::string sender);
  // For how long the present piece is being written; 0: none is.
  double seconds(double now) const;

 private:
  struct Desk;
  std::shared_ptr<Desk> desk_;  // shared with the thread
  std::thread thread_;          // from the first piece on
};

}  // namespace crema::cluster
