#include "node/clients.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/clock.h"
#include "base/fd_io.h"
#include "base/random_bytes.h"

namespace crema::node {
namespace {

constexpr int64_t kMostRows = int64_t{1} << 40;
constexpr uint64_t kLargestBlock = uint64_t{1} << 40;
constexpr double kPatience = 1;  // seconds: who waits no longer for room says nothing about the program

std::string unguessableName() {
  std::string name = "crema-node-";
  for (const char byte : randomBytes(16)) name += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return name;
}

// The bytes of a block in the answer instead of its descriptor beside it; returns that there is none.
int inlined(int descriptor, wire::NodeAnswer* to) {
  std::string& bytes = *to->mutable_block();
  bytes.resize(to->bytes());
  const auto part = [&](size_t at) {
    return ::pread(descriptor, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
  };
  if (!moveAll(bytes.size(), part)) ioError("cannot read a block of {} bytes: {}", bytes.size(), systemError(errno));
  return -1;
}

void checkUser(const Socket& socket) {
  ucred who{};
  socklen_t length = sizeof who;
  if (::getsockopt(socket.descriptor(), SOL_SOCKET, SO_PEERCRED, &who, &length) != 0 ||
      (who.uid != ::geteuid() && who.uid != 0))
    throw Error(ErrorKind::kPeer, "another user's process");
}

}  // namespace

// A connection, with what it has opened.
struct Clients::Client {
  Frames frames;
  bool local;                // memory travels as descriptors
  const Interrupt& closing;  // of the node
  std::vector<uint64_t> feeds = {};
  std::shared_ptr<const Descriptor> given = nullptr;  // beside the last answer, until that is sent

  Wait waitOf(double seconds) {
    const auto gone = [this] {
      closing.check();
      return frames.peerGone();
    };
    return {Deadline::after(seconds), gone};
  }
};

Clients::Clients(const Secret& secret, const std::string& host, Node node)
    : name_(unguessableName()),
      node_(std::move(node)),
      door_(Socket::listenUnseen(name_), secret, "node", "the node's socket",
            [this](Socket socket, const Interrupt& closing) { serve(std::move(socket), true, closing); }),
      port_(host.empty() ? nullptr
                         : std::make_unique<Door>(Socket::listenOn(host, 0), secret, "node", "the node's port",
                                                  [this](Socket socket, const Interrupt& closing) {
                                                    serve(std::move(socket), false, closing);
                                                  })) {}

void Clients::serve(Socket socket, bool local, const Interrupt& closing) {
  if (local) checkUser(socket);
  Client client{Frames(std::move(socket)), local, closing};
  try {
    for (;;) {
      wire::NodeRequest request;
      Descriptor beside = client.frames.receive(&request, &closing);
      if (request.put().follows()) client.frames.expect(request.put().bytes());
      wire::NodeAnswer to;
      int descriptor = -1;
      try {
        descriptor = answer(request, std::move(beside), client, &to);
        if (!client.local && descriptor >= 0) descriptor = inlined(descriptor, &to);
      } catch (const std::exception&) {
        const Error e = asError(std::current_exception());
        to.Clear();
        to.set_failed(e.what()), to.set_kind(name(e.kind()));
      }
      client.frames.skip(&closing);  // of a block that was not taken
      client.frames.send(to, descriptor, &closing);
      client.given.reset();
    }
  } catch (const std::exception&) {  // it has gone, or the node ends
  }
  for (const uint64_t feed : client.feeds) node_.broker.close(feed);
}

// Returns the descriptor to send beside the answer, or -1.
int Clients::answer(const wire::NodeRequest& r, Descriptor beside, Client& client, wire::NodeAnswer* to) {
  to->set_taken(true);
  switch (r.what_case()) {
    case wire::NodeRequest::kPut:
      put(r.put(), std::move(beside), client, to);
      break;
    case wire::NodeRequest::kGet:
      return get(r.get(), client, to);
    case wire::NodeRequest::kLook: {
      const auto value = node_.broker.look(r.look().key());
      to->set_taken(value.has_value());
      if (value) to->set_value(*value);
      break;
    }
    case wire::NodeRequest::kSet:
      node_.broker.set(r.set().key(), r.set().value());
      if (r.set().key() == "state") node_.stateSet(r.set().value());
      break;
    case wire::NodeRequest::kFail:
      node_.programFailed(r.fail().story());
      break;
    case wire::NodeRequest::kPort:
      client.given = std::make_shared<Descriptor>(node_.port.copy());
      if (!client.given->open()) invalid("this node holds no port: it has been released, or TENSORFLOW_PORT is set");
      return client.given->get();
    case wire::NodeRequest::kStuck:
      to->set_taken(idle() >= r.stuck().seconds());
      if (to->taken()) node_.programStuck(r.stuck().story());
      break;
    case wire::NodeRequest::kRelease:
      node_.port.release();
      break;
    default:
      answerOfQueue(r, client, to);
  }
  return -1;
}

void Clients::answerOfQueue(const wire::NodeRequest& r, Client& client, wire::NodeAnswer* to) {
  Broker& broker = node_.broker;
  switch (r.what_case()) {
    case wire::NodeRequest::kDone:
      return broker.done(r.done().queue(), r.done().bytes(), r.done().count());
    case wire::NodeRequest::kJoin:
      return to->set_taken(broker.join(r.join().queue(), client.waitOf(r.join().timeout())));
    case wire::NodeRequest::kDrop:
      return to->set_count(broker.drop(r.drop().queue()));
    case wire::NodeRequest::kOpen:
      client.feeds.push_back(broker.open());
      return to->set_feed(client.feeds.back());
    case wire::NodeRequest::kCount:
      return to->set_count(broker.count(r.count().queue()));
    default:
      invalid("a request came that this node does not know; use one version of the package everywhere");
  }
}

void Clients::put(const wire::NodeRequest::Put& r, Descriptor beside, Client& client, wire::NodeAnswer* to) {
  if (r.mark() == wire::NONE) return to->set_taken(putBlock(r, std::move(beside), client));
  Item item;
  item.mark = r.mark(), item.feed = r.feed(), item.epoch = r.epoch();
  to->set_taken(node_.broker.put(r.queue(), item, client.waitOf(r.timeout())));
}

// Room first: a block from another machine is read when there is some for it, and nobody waits behind one that is kept.
bool Clients::putBlock(const wire::NodeRequest::Put& r, Descriptor beside, Client& client) {
  struct stat memory {};
  if (!r.follows() && !beside.open()) badData("a block of {} rows came without its memory", r.rows());
  if (beside.open() && ::fstat(beside.get(), &memory) != 0) ioError("a block of rows: {}", systemError(errno));
  const uint64_t most = r.follows() ? kLargestBlock : static_cast<uint64_t>(memory.st_size);
  if (r.bytes() > most || r.rows() < 0 || r.rows() > kMostRows)
    badData("a block of {} rows in {} bytes came, with {} bytes of memory at most", r.rows(), r.bytes(), most);
  if (!reserve(r, client)) return false;
  Item item;
  item.rows = item.count = r.rows(), item.bytes = r.bytes(), item.feed = r.feed(), item.reserved = true;
  if (r.has_place()) item.place = r.place();
  try {
    if (r.follows()) beside = client.frames.receiveBlock(&client.closing);
  } catch (const Error&) {
    node_.broker.release(r.queue(), r.bytes());
    throw;
  }
  item.block = std::make_shared<Descriptor>(std::move(beside));
  if (!r.keep()) return node_.broker.put(r.queue(), std::move(item), client.waitOf(r.timeout()));
  const MutexLock one(keeping_);
  if (!node_.broker.put(r.queue(), item, client.waitOf(r.timeout()), &item)) return false;
  if (item.count > 0) keep(r.queue(), item);
  return true;
}

// The program has the rows, so that a repeated task could not bring them to later epochs: the run has failed.
void Clients::keep(const std::string& queue, const Item& item) {
  try {
    node_.kept.add(queue, item);
  } catch (const Error& e) {
    node_.programFailed(e.what());
    throw;
  }
}

// A wait may be longer than the timeout where others' blocks come first; it ends when the program has done nothing for
// that long, which is then stuck.
bool Clients::reserve(const wire::NodeRequest::Put& r, Client& client) {
  for (;;) {
    try {
      return node_.broker.reserve(r.queue(), r.bytes(), client.waitOf(r.timeout()));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kTimeout || r.timeout() < kPatience) throw;
      if (idle() < r.timeout()) continue;
      node_.programStuck(
          fmt::format("has taken no rows for {:.0f} s (feed_timeout: raise it if a batch takes longer), and there "
                      "is no room for more{}",
                      r.timeout(), node_.broker.standing()));
      throw;
    }
  }
}

double Clients::idle() { return monotonicSeconds() - node_.broker.totals().moved; }

int Clients::get(const wire::NodeRequest::Get& r, Client& client, wire::NodeAnswer* to) {
  auto item = node_.broker.get(r.queue(), r.feed(), client.waitOf(r.timeout()));
  to->set_taken(item.has_value());
  if (!item) return -1;
  to->set_mark(item->mark);
  if (item->mark == wire::END_OF_EPOCH) *to->mutable_epoch() = item->epoch;
  if (!item->block) return -1;
  to->set_rows(item->rows), to->set_first(item->first), to->set_count(item->count), to->set_bytes(item->bytes);
  client.given = item->block;
  return client.given->get();
}

}  // namespace crema::node
