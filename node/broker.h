// The queues and the state of a program that is fed: what the original's manager process held. A queue holds blocks of
// rows, as descriptors of memory that nobody else has a name for, and marks. The broker reads no block.
//
// Bounded: a block waits for room until all that wait or are in use have `budget` bytes at most; one that is larger than
// the budget is taken when there is nothing else. Those that wait for room in one queue get it in the order in which they
// came, so that small blocks do not keep a large one out for ever. When other queues have filled the room, one that the
// program waits for, and that has nothing, gets an eighth of it more, so that a queue that nobody takes from holds up no
// other. When nothing waits and the program, which keeps all that it was given, waits for more, it gets the next block: what
// it keeps is its own to bound. Results are not counted: they are of rows that were, and whoever feeds takes them between two blocks.
//
// A feeding task that Spark repeats brings rows again: those of a sharded feed have places, and come once (node/places.h).
//
// Order: a queue is first in, first out. Results go to the feed whose rows they answer: result i of all belongs to row i
// of all that the program has taken from feeds that want results.
//
// Thread-safe. Waits end with their Wait, and with fail(), whose error they throw.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "base/mutex.h"
#include "node.pb.h"
#include "node/descriptor.h"
#include "node/places.h"

namespace crema::node {

struct Item {
  std::shared_ptr<const Descriptor> block;  // null: a mark
  wire::Mark mark = wire::NONE;
  int64_t rows = 0;              // of the block
  int64_t first = 0, count = 0;  // those of them that are meant
  uint64_t bytes = 0;
  uint64_t feed = 0;                              // that wants results; 0: none
  wire::NodeNote::Epoch epoch;                    // of END_OF_EPOCH
  std::optional<wire::NodeRequest::Place> place;  // of the block's first row, where rows are sharded
  bool reserved = false;                          // there is room for it already: reserve()
};

struct Wait {
  Deadline deadline;
  std::function<bool()> gone = nullptr;  // asked a few times a second: who waits is no longer there
};

// So far, over all queues that are fed.
struct Totals {
  int64_t put = 0, taken = 0;  // rows
  uint64_t bytes = 0;          // put
  double idle = 0, full = 0;   // seconds in which the program waited for rows, and feeds for room
  bool left = false;           // the program has ended by itself, did not say that it wants no more, and left rows
  double moved = 0;            // monotonicSeconds() when the program last took, gave back or answered rows
};

class Broker {
 public:
  Broker(const std::vector<std::string>& queues, uint64_t budget);

  // A block or a mark behind what is there. false: the program wants no more rows (its state is "terminating" or
  // "stopped", or it has ended), and the item is dropped. kTimeout when there was no room for it. A block for "output"
  // goes to the feeds that it belongs to. as: what of the block was put, as rows that had come before are left out.
  [[nodiscard]] bool put(const std::string& queue, Item item, const Wait& wait, Item* as = nullptr);
  // Room for a block that has not come yet; put() takes an item that is `reserved`, and release() gives the room back.
  // false and kTimeout as of put(). Queues that are not fed have room.
  [[nodiscard]] bool reserve(const std::string& queue, uint64_t bytes, const Wait& wait);
  void release(const std::string& queue, uint64_t bytes);
  // How many rows have come of that call of train(), of which no more are taken from now on.
  wire::NodeNote::Counted counted(const wire::NodeNote::Counted& asked);
  // The next item; nothing at the deadline. feed: of the results of that feed.
  [[nodiscard]] std::optional<Item> get(const std::string& queue, uint64_t feed, const Wait& wait);
  // `count` items of get() with that many bytes are no longer in use.
  void done(const std::string& queue, uint64_t bytes, int64_t count);
  [[nodiscard]] bool join(const std::string& queue,
                          const Wait& wait);  // nothing waits or is in use; false at the deadline
  int64_t drop(const std::string& queue);     // what waits; returns how many rows that were
  int64_t count(const std::string& queue);

  uint64_t open();            // a feed that wants results
  void close(uint64_t feed);  // who opened it has gone: its results are dropped

  std::optional<std::string> look(const std::string& key);
  void set(const std::string& key, const std::string& value);

  void endEpoch(const wire::NodeNote::Epoch& epoch);  // its mark behind what waits in its queue
  // END_OF_FEED behind all that waits, in every queue that is fed. failed: what waits is dropped instead, and who takes
  // rows gets an error with this text, as a program must not take what it has for all there is.
  void endFeeds(const std::string& failed = "");
  void programEnded();  // nobody takes rows any more: what waits is dropped
  void fail(const Error& why);
  Totals totals();
  bool unwanted();  // the program wants no more rows
  // "; queue 'a' holds 250 of 256 MiB", and which queue the program waits for; nothing when they hold nothing.
  std::string standing();

 private:
  struct Queue {
    std::deque<Item> items;
    std::list<char> line;  // one entry for each put() that waits for room, the first to be served in front
    int64_t inUse = 0;     // items that get() has given and done() has not taken back
    uint64_t held = 0;     // bytes that wait or are in use
    uint64_t used = 0;     // those that are in use
    int waiting = 0;       // get() that wait for items
    double lacked = -1;    // monotonicSeconds() when a get() last found nothing
    std::string failed;    // why there is no end of its feed
    Places places;
  };
  struct Feed {
    std::deque<Item> results;
  };
  struct Owed {  // rows that the program has taken and not answered yet
    uint64_t feed;
    int64_t rows;
  };
  Queue& queueNamed(const std::string& name) CREMA_REQUIRES(mutex_);
  static bool isFed(const std::string& queue) { return queue != "output" && queue != "error"; }
  bool unasked() const CREMA_REQUIRES(mutex_);
  bool noMoreRows() const CREMA_REQUIRES(mutex_);
  bool hasRoom(const Queue& queue, uint64_t bytes) const CREMA_REQUIRES(mutex_);
  bool waitForRoom(MutexLock& lock, Queue& queue, uint64_t bytes, const Wait& wait) CREMA_REQUIRES(mutex_);
  bool waitForItems(MutexLock& lock, Queue& queue, const Wait& wait, const std::function<bool()>& ready)
      CREMA_REQUIRES(mutex_);
  bool makeRoom(MutexLock& lock, const std::string& name, uint64_t bytes, const Wait& wait) CREMA_REQUIRES(mutex_);
  bool leaveOutWhatCame(Queue& queue, Item& item) CREMA_REQUIRES(mutex_);
  void giveBack(Queue& queue, uint64_t bytes) CREMA_REQUIRES(mutex_);
  std::string standingNow() const CREMA_REQUIRES(mutex_);
  void putResults(Item item) CREMA_REQUIRES(mutex_);
  bool waitFor(MutexLock& lock, const Wait& wait, const std::function<bool()>& ready) CREMA_REQUIRES(mutex_);
  // The same; atEnd() is called however the wait ends.
  bool waitFor(MutexLock& lock, const Wait& wait, const std::function<bool()>& ready,
               const std::function<void()>& atEnd) CREMA_REQUIRES(mutex_);

  Mutex mutex_;
  std::condition_variable changed_;
  const uint64_t budget_;
  uint64_t held_ CREMA_GUARDED_BY(mutex_) = 0;  // bytes
  uint64_t lastFeed_ CREMA_GUARDED_BY(mutex_) = 0;
  bool ended_ CREMA_GUARDED_BY(mutex_) = false;
  std::map<std::string, Queue> queues_ CREMA_GUARDED_BY(mutex_);
  std::map<uint64_t, Feed> feeds_ CREMA_GUARDED_BY(mutex_);
  std::deque<Owed> owed_ CREMA_GUARDED_BY(mutex_);
  std::map<std::string, std::string> state_ CREMA_GUARDED_BY(mutex_);
  std::optional<Error> failed_ CREMA_GUARDED_BY(mutex_);
  Totals totals_ CREMA_GUARDED_BY(mutex_);
};

}  // namespace crema::node
