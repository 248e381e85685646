// What a node says to the coordinator's host, and what that asks of it, while the program runs: rows fed and taken,
// that a queue is empty, and that earlier epochs have been fed again.
#pragma once
#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "cluster/session.h"
#include "node.pb.h"
#include "node/broker.h"
#include "node/kept.h"

namespace crema::node {

class Reports {
 public:
  // All must outlive it.
  Reports(Broker& broker, Kept& kept, const Interrupt& interrupt)
      : broker_(broker), kept_(kept), interrupt_(interrupt) {}
  ~Reports();

  void say(const wire::NodeNote& note);    // from any thread; send() sends it
  void asked(const wire::NodeNote& note);  // from the session's listening thread
  [[nodiscard]] bool waiting();            // there is something to send at once
  // stuck: called with a text when the program has taken nothing for as long as a drain or a replay allows.
  void send(cluster::Session& session, int member, bool programOver,
            const std::function<void(const std::string&)>& stuck);
  void sendFed(cluster::Session& session, int member);  // when it has changed

 private:
  // Of one or several queues, whose later one withdraws it. Its thread waits for those that it has withdrawn.
  struct Replay {
    std::set<std::string> queues;
    std::vector<std::shared_ptr<Replay>> before;
    std::atomic<bool> withdrawn = false, over = false;
    double silence = 0;  // that it allows the program
    std::thread thread;
  };
  void replay(const wire::NodeNote::Replay& what);
  void withdraw(Replay& by) CREMA_REQUIRES(mutex_);
  std::string feedAgain(const wire::NodeNote::Replay& what, const Replay& mine);
  void watch(const std::function<void(const std::string&)>& stuck);
  static void report(cluster::Session& session, int member, const wire::NodeNote& note);

  Broker& broker_;
  Kept& kept_;
  const Interrupt& interrupt_;
  Mutex mutex_;
  std::list<wire::NodeNote> notes_ CREMA_GUARDED_BY(mutex_);
  std::list<wire::NodeNote::Drained> drains_ CREMA_GUARDED_BY(mutex_);
  std::list<std::shared_ptr<Replay>> replays_ CREMA_GUARDED_BY(mutex_);
  Totals last_;
  double watched_ = 0;  // since when the host has waited for the end of rows; 0: it does not
};

}  // namespace crema::node
