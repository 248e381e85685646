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
  bool local;  // memory travels as descriptors
  std::vector<uint64_t> feeds = {};
  std::shared_ptr<const Descriptor> given = nullptr;  // beside the last answer, until that is sent

  Wait waitOf(double seconds) {
    return {Deadline::after(seconds), [this] { return frames.peerGone(); }};
  }
};

Clients::Clients(const std::string& token, const std::string& host, Node node)
    : name_(unguessableName()),
      node_(std::move(node)),
      door_(Socket::listenUnseen(name_), token, "node", "the node's socket",
            [this](Socket socket, const Interrupt& closing) { serve(std::move(socket), true, closing); }),
      port_(host.empty() ? nullptr
                         : std::make_unique<Door>(Socket::listenOn(host, 0), token, "node", "the node's port",
                                                  [this](Socket socket, const Interrupt& closing) {
                                                    serve(std::move(socket), false, closing);
                                                  })) {}

void Clients::serve(Socket socket, bool local, const Interrupt& closing) {
  if (local) checkUser(socket);
  Client client{Frames(std::move(socket)), local};
  try {
    for (;;) {
      wire::NodeRequest request;
      Descriptor beside = client.frames.receive(&request, &closing);
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
  Item item;
  item.mark = r.mark(), item.feed = r.feed(), item.epoch = r.epoch();
  if (r.mark() == wire::NONE) {
    if (!client.local) beside = memoryHolding(r.block(), "a block of rows");
    if (!beside.open()) badData("a block of {} rows came without its memory", r.rows());
    struct stat memory {};
    if (::fstat(beside.get(), &memory) != 0 || r.bytes() > static_cast<uint64_t>(memory.st_size) || r.rows() < 0 ||
        r.rows() > kMostRows)
      badData("a block of {} rows in {} bytes came with {} bytes of memory", r.rows(), r.bytes(), memory.st_size);
    item.block = std::make_shared<Descriptor>(std::move(beside));
    item.rows = item.count = r.rows(), item.bytes = r.bytes();
  }
  if (!r.keep() || !item.block) {
    to->set_taken(putWhenThereIsRoom(r, item, client));
    return;
  }
  const MutexLock one(keeping_);
  to->set_taken(putWhenThereIsRoom(r, item, client));
  if (to->taken()) node_.kept.add(r.queue(), item);
}

// A wait may be longer than the timeout where others' blocks come first; it ends when the program has done nothing for
// that long, which is then stuck.
bool Clients::putWhenThereIsRoom(const wire::NodeRequest::Put& r, const Item& item, Client& client) {
  for (;;) {
    try {
      return node_.broker.put(r.queue(), item, client.waitOf(r.timeout()));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kTimeout || r.timeout() < kPatience) throw;
      if (idle() < r.timeout()) continue;
      node_.programStuck(fmt::format("has taken no rows for {:.0f} s, and there is no room for more", r.timeout()));
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
