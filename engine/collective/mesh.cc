#include "collective/mesh.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <future>

namespace crema::collective {
namespace {

std::string describe(const FrameHeader& h) {
  return fmt::format("generation {}, round {}, worker {}, step {}, {} bytes", h.generation, h.round, h.worker, h.step,
                     h.bytes);
}

// Whether an error is of a worker, and not the interrupt's or this machine's.
bool ofPeer(const Error& e, const Interrupt* interrupt) {
  return !(interrupt && interrupt->raised()) && (e.kind() == ErrorKind::kPeer || e.kind() == ErrorKind::kTimeout);
}

}  // namespace

// The exchange with one worker in one round: it sends a header and `parts`, and receives a header and `into`.
struct Mesh::Transfer {
  int peer = 0;
  FrameHeader out{}, in{};
  std::vector<std::pair<const char*, size_t>> parts;
  size_t part = 0, sent = 0;
  char* into = nullptr;
  size_t want = 0, got = 0;  // header included
  bool sending() const { return part < parts.size(); }
  bool receiving() const { return got < want; }
  bool begun() const { return got >= sizeof in; }  // by the other one
};

Mesh::Mesh(const MeshOptions& options, Unconnected) : options_(options) {
  sockets_.resize(static_cast<size_t>(options_.workers));
  incoming_.resize(static_cast<size_t>(options_.workers));
  if (options_.shares.empty())
    for (int w = 0; w < options_.workers; ++w)
      options_.shares.push_back(ranksOfWorker(w, options_.workers, options_.ranks));
  planSum();
}

void Mesh::connect() {
  inside(
      [&] {
        return fmt::format("while worker {} was connecting to the {} others", numberOf(options_.worker),
                           options_.workers - 1);
      },
      [&] {
        const Deadline later = Deadline::after(2 * options_.connectTimeout);
        connectToEarlier();
        awaitLater(later);
      });
}

void Mesh::planSum() {
  for (const RankRange share : options_.shares) subtrees_.push_back(wholeSubtrees(share, options_.ranks));
  const auto isLeaf = [&](RankRange node) {
    return std::any_of(subtrees_.begin(), subtrees_.end(),
                       [&](const auto& of) { return std::find(of.begin(), of.end(), node) != of.end(); });
  };
  sum_ = TreeSum(planTree({{0, options_.ranks}}, isLeaf));
  for (size_t w = 0; w < subtrees_.size(); ++w)
    for (size_t i = 0; i < subtrees_[w].size(); ++i) leaves_.emplace_back(w, i);
}

void Mesh::keep(int worker, Socket socket) {
  socket.setPeer(fmt::format("worker {} ({})", numberOf(worker), socket.peer()));
  sockets_[static_cast<size_t>(worker)] = std::move(socket);
}

Socket Mesh::connectTo(int worker, Deadline deadline) const {
  const auto at = static_cast<size_t>(worker);
  Secret secret = options_.secret;
  if (!options_.tokens.empty()) secret.token = options_.tokens[at];
  Socket s = connectThroughDoor(options_.peers[at], secret, "data", deadline, options_.interrupt, deadline);
  const FrameHeader hello{
      FrameHeader::kMagic, options_.generation, FrameHeader::kHello, static_cast<uint32_t>(options_.worker), 0, 0};
  s.writeAll(&hello, sizeof hello, deadline, options_.interrupt);
  return s;
}

// To all at once: one that cannot be reached takes nothing of the time for the others, and each that cannot is named. So
// is one that was tried for more than half of the time when all were asked to leave: another worker, whose time was over
// a moment before, has named it, and this one's word decides which end of that link is broken.
void Mesh::connectToEarlier() {
  const Deadline deadline = Deadline::after(options_.connectTimeout);
  const auto triedInVain = [&] {
    return options_.interrupt && options_.interrupt->raised() && deadline.left() < options_.connectTimeout / 2;
  };
  std::vector<std::future<Socket>> all;
  for (int w = 0; w < options_.worker; ++w)
    all.push_back(std::async(std::launch::async, [this, w, deadline] { return connectTo(w, deadline); }));
  std::vector<int> lost;
  std::string why;
  for (int w = 0; w < options_.worker; ++w) {
    try {
      keep(w, all[static_cast<size_t>(w)].get());
    } catch (const Error& e) {
      if (!ofPeer(e, options_.interrupt) && !triedInVain()) throw;
      lost.push_back(w);
      why += fmt::format("{}worker {} cannot be reached; is a firewall between the two machines? {}",
                         why.empty() ? "" : "\n", numberOf(w), e.what());
    }
  }
  if (!lost.empty()) throw LostPeers(ErrorKind::kPeer, lost, why);
}

// They have had longer than connectToEarlier(): one that could not reach a third worker has said so before, and left.
void Mesh::awaitLater(Deadline deadline) {
  std::vector<int> lost;
  std::string missing;
  for (int w = options_.worker + 1; w < options_.workers; ++w) {
    auto s = options_.door->take(static_cast<uint32_t>(w), options_.generation, deadline, options_.interrupt);
    if (s) {
      keep(w, std::move(*s));
    } else {
      lost.push_back(w);
      missing += (missing.empty() ? "" : ", ") + std::to_string(numberOf(w));
    }
  }
  if (!lost.empty())
    throw LostPeers(ErrorKind::kTimeout, lost,
                    fmt::format("worker(s) {} did not connect within {} s; is a firewall between the machines?",
                                missing, 2 * options_.connectTimeout));
}

int64_t Mesh::cut(int w, int64_t count) const {
  const int64_t units = (count + 15) / 16;
  return std::min(count, units * w / options_.workers * 16);
}

void Mesh::allReduce(const std::vector<const float*>& pieces, float* total, int64_t count, const Tag& tag) {
  const int me = options_.worker, all = options_.workers;
  const int64_t first = cut(me, count), mine = cut(me + 1, count) - first;
  std::vector<Transfer> scatter, gather;
  for (int d = 1; d < all; ++d) {  // peers in the order me+1, me+2, ..., so that not all begin with the same one
    const int w = (me + d) % all;
    const int64_t theirs = cut(w, count), size = cut(w + 1, count) - theirs;
    Transfer t;
    t.peer = w;
    for (const float* p : pieces)
      t.parts.emplace_back(reinterpret_cast<const char*>(p + theirs), static_cast<size_t>(size) * 4);
    auto& in = incoming_[static_cast<size_t>(w)];
    const size_t wanted = static_cast<size_t>(mine) * subtrees_[static_cast<size_t>(w)].size();
    if (in.size() < wanted) in.resize(wanted);
    t.into = reinterpret_cast<char*>(in.data());
    t.want = wanted * 4;
    scatter.push_back(t);
    Transfer g;
    g.peer = w;
    g.parts.emplace_back(reinterpret_cast<const char*>(total + first), static_cast<size_t>(mine) * 4);
    g.into = reinterpret_cast<char*>(total + theirs);
    g.want = static_cast<size_t>(size) * 4;
    gather.push_back(g);
  }
  exchange(scatter, FrameHeader::kScatter, tag);
  addTree(pieces, first, mine, total + first);
  exchange(gather, FrameHeader::kGather, tag);
}

void Mesh::copy(const std::vector<Bytes>& of, const std::function<bool(int)>& takes, const Tag& tag) {
  const int me = options_.worker, all = options_.workers;
  std::vector<Transfer> transfers;
  for (int d = 1; d < all; ++d) {
    const int w = (me + d) % all;
    const Bytes &mine = of[static_cast<size_t>(me)], &theirs = of[static_cast<size_t>(w)];
    Transfer t;
    t.peer = w;
    if (takes(w) && mine.size > 0) t.parts.emplace_back(mine.at, mine.size);
    if (takes(me)) t.into = theirs.at, t.want = theirs.size;
    transfers.push_back(t);
  }
  exchange(transfers, FrameHeader::kCopy, tag);
}

// total = the tree over all ranks; its leaves are the workers' subtree sums. Blocks of 4096 stay in L1.
void Mesh::addTree(const std::vector<const float*>& pieces, int64_t first, int64_t size, float* total) {
  constexpr int64_t kBlock = 4096;
  for (int64_t at = 0; at < size; at += kBlock) {
    const int64_t n = std::min(kBlock, size - at);
    sum_.run(n, [&](int leaf) {
      const auto [w, i] = leaves_[static_cast<size_t>(leaf)];
      return static_cast<int>(w) == options_.worker ? pieces[i] + first + at
                                                    : incoming_[w].data() + static_cast<int64_t>(i) * size + at;
    });
    std::copy_n(sum_.root(0), n, total + at);
  }
}

// Writes as much as the socket takes without waiting; how many bytes that is.
size_t Mesh::send(Transfer& t) {
  const Socket& s = sockets_[static_cast<size_t>(t.peer)];
  size_t moved = 0;
  while (t.sending()) {
    const auto& [from, size] = t.parts[t.part];
    const size_t n = size == 0 ? 0 : s.writeSome(from + t.sent, size - t.sent);
    t.sent += n, moved += n;
    if (t.sent == size)
      t.sent = 0, ++t.part;
    else if (n == 0)
      break;
  }
  return moved;
}

// Reads as much as the socket holds; how many bytes that is. The header is checked before any byte of the payload is read.
size_t Mesh::receive(Transfer& t, uint32_t round, const Tag& tag) {
  const Socket& s = sockets_[static_cast<size_t>(t.peer)];
  for (size_t moved = 0;;) {
    const bool head = t.got < sizeof t.in;
    char* at = head ? reinterpret_cast<char*>(&t.in) + t.got : t.into + (t.got - sizeof t.in);
    const size_t room = (head ? sizeof t.in : t.want) - t.got;
    const size_t n = room == 0 ? 0 : s.readSome(at, room);
    if (n == 0) return moved;
    t.got += n, moved += n;
    if (t.got != sizeof t.in) continue;
    const FrameHeader want{FrameHeader::kMagic,           options_.generation, round,
                           static_cast<uint32_t>(t.peer), tag.value(),         t.want - sizeof t.in};
    if (std::memcmp(&t.in, &want, sizeof want) != 0)
      throw LostPeers(
          ErrorKind::kPeer, {t.peer},
          fmt::format("{} sent a frame that does not fit: {}; expected {}", s.peer(), describe(t.in), describe(want)));
  }
}

size_t Mesh::move(Transfer& t, uint32_t round, const Tag& tag) {
  try {
    const size_t sent = t.sending() ? send(t) : 0;
    return sent + (t.receiving() ? receive(t, round, tag) : 0);
  } catch (const LostPeers&) {
    throw;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kPeer) throw;
    throw LostPeers(ErrorKind::kPeer, {t.peer}, e.what(), true);
  }
}

void Mesh::late(const std::vector<Transfer>& transfers, const Tag& tag) const {
  std::vector<int> lost;
  std::string names;
  for (const Transfer& t : transfers) {
    if (!t.sending() && !t.receiving()) continue;
    lost.push_back(t.peer);
    names += (names.empty() ? "" : ", ") + sockets_[static_cast<size_t>(t.peer)].peer();
  }
  throw LostPeers(ErrorKind::kTimeout, lost,
                  fmt::format("no data from {} for {} s in {}", names, options_.stepTimeout, tag.text()));
}

// Of [from, to], until all others had begun, what this worker has waited in.
void Mesh::countWaiting(double from, double to) {
  waitedForOthers_ = waitedForOthers_ + std::max(0.0, to - std::max<double>(from, waitingSince_));
}

void Mesh::exchange(std::vector<Transfer>& transfers, uint32_t round, const Tag& tag) {
  const auto me = static_cast<uint32_t>(options_.worker);
  for (Transfer& t : transfers) {
    size_t bytes = 0;
    for (const auto& p : t.parts) bytes += p.second;
    t.out = {FrameHeader::kMagic, options_.generation, round, me, tag.value(), bytes};
    t.parts.insert(t.parts.begin(), {reinterpret_cast<const char*>(&t.out), sizeof t.out});
    t.want += sizeof t.in;
  }
  double since = monotonicSeconds();  // the beginning, or the last bytes
  const double began = since;
  bool alone = round != FrameHeader::kGather;  // not all others have begun; none gathers before all have scattered
  std::vector<pollfd> polls;
  for (;;) {
    polls.clear();
    for (Transfer& t : transfers) {
      if (const size_t bytes = move(t, round, tag); bytes > 0) since = monotonicSeconds(), transferred(bytes);
      const int events = (t.sending() ? POLLOUT : 0) | (t.receiving() ? POLLIN : 0);
      if (events) polls.push_back({sockets_[static_cast<size_t>(t.peer)].descriptor(), static_cast<short>(events), 0});
    }
    if (alone && std::all_of(transfers.begin(), transfers.end(), [](const Transfer& t) { return t.begun(); }))
      alone = false, countWaiting(began, monotonicSeconds());
    if (polls.empty()) return;
    for (const Interrupt* end : {static_cast<const Interrupt*>(&abandoned_), options_.interrupt})
      if (end) end->check(), polls.push_back({end->descriptor(), POLLIN, 0});
    const double last = std::max(since, someoneAdvanced());
    const Deadline deadline = Deadline::after(last + options_.stepTimeout - monotonicSeconds());
    if (deadline.passed()) late(transfers, tag);
    ::poll(polls.data(), polls.size(), std::min(1000, deadline.pollMillis()));
  }
}

}  // namespace crema::collective
