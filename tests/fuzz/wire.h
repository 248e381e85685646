// What other processes say on a connection. A good conversation is damaged and sent to the end that reads it, over a real
// socket of this machine; the end must say that it cannot go on, or be content.
#pragma once
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/util/delimited_message_util.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/door.h"
#include "cluster/channel.h"
#include "cluster/frame.h"
#include "collective/mesh.h"
#include "control.pb.h"
#include "data/row.h"
#include "fuzz/formats.h"
#include "fuzz/member.h"
#include "node.pb.h"
#include "node/broker.h"
#include "node/clients.h"
#include "worker/host_rows.h"
#include "worker/joining.h"

namespace crema::fuzz {

constexpr char kWireToken[] = "the token of this fuzzer";

// A connected pair; the other end has said `bytes` and nothing more.
inline Socket saying(const std::string& bytes) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) ioError("no socketpair");
  const Socket other(ends[1], "the fuzzer");
  const int room = 1 << 20;
  ::setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  other.writeAll(bytes.data(), bytes.size(), Deadline::after(5), nullptr);
  ::shutdown(ends[1], SHUT_WR);
  return Socket(ends[0], "the fuzzer");
}

template <class Message>
void readMessages(const std::string& bytes, void (*then)(const Message&)) {
  cluster::Channel channel(saying(bytes));
  for (;;) {
    Message m;
    channel.receive(&m, Deadline::after(5), nullptr);  // the end of the connection is an Error
    if (then) then(m);
  }
}
inline void readToCoordinator(const std::string& bytes) { readMessages<control::ToCoordinator>(bytes, nullptr); }

// As a worker does: it begins the generations that the messages tell of.
inline void readToMember(const std::string& bytes) {
  readMessages<control::ToMember>(bytes, [](const auto& m) {
    if (m.has_start()) worker::sharesOf(m.start(), 8);
  });
}

inline std::string packetsOf(const std::vector<std::string>& texts) {
  Packets packets(std::nullopt);
  std::string wire;
  const auto send = [&](const iovec* parts, size_t count) {
    size_t all = 0;
    for (size_t i = 0; i < count; ++i)
      wire.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len), all += parts[i].iov_len;
    return all;
  };
  for (const auto& text : texts)
    for (size_t at = 0; at < text.size();) at += packets.write(send, text.data() + at, text.size() - at);
  return wire;
}

inline void readPackets(const std::string& bytes) {
  Packets packets(std::nullopt);
  size_t at = 0;
  const auto receive = [&](void* to, size_t room) {
    const size_t n = std::min(room, bytes.size() - at);
    std::copy_n(bytes.data() + at, n, static_cast<char*>(to));
    at += n;
    return n;
  };
  std::array<char, 300> part{};
  while (packets.read(receive, part.data(), part.size()) > 0) {
  }
  if (at < bytes.size()) internal("bytes were left");
}

inline std::vector<std::string> controlSeeds() {
  std::string member, coordinator;
  control::ToCoordinator m;
  auto* hello = m.mutable_hello();
  hello->set_version("0.1.0"), hello->set_member(1), hello->set_host("h"), hello->set_data_address("127.0.0.1:7");
  member += cluster::framed(m);
  m.mutable_ready()->set_state_digest("d"), m.mutable_ready()->set_records("100 records");
  member += cluster::framed(m);
  m.mutable_beat()->set_iteration(3), m.mutable_beat()->set_compute_seconds(0.5);
  member += cluster::framed(m);
  m.mutable_paused()->set_generation(1), m.mutable_paused()->set_iteration(3);
  member += cluster::framed(m);
  m.mutable_piece()->set_data(std::string(100, 'x')), m.mutable_piece()->set_size(100);
  member += cluster::framed(m);
  control::ToMember t;
  auto* start = t.mutable_start();
  start->set_generation(2), start->add_peers("127.0.0.1:7"), start->add_number(0), start->add_share_end(8);
  start->add_iteration(-1);
  coordinator += cluster::framed(t);
  t.mutable_regroup()->set_generation(3), t.mutable_regroup()->set_why("lost");
  coordinator += cluster::framed(t);
  t.mutable_abort()->set_story("no"), t.mutable_abort()->set_kind("peer");
  coordinator += cluster::framed(t);
  return {member, coordinator};
}

// Worker 0 of two; worker 1 proves the token, then says what is damaged: its hello, its part of both rounds.
inline void readMesh(const std::string& bytes) {
  collective::PeerDoor door("127.0.0.1", Secret(kWireToken), "the fuzzer's port");
  Socket s;
  const Deadline soon = Deadline::after(5);
  s = connectThroughDoor(door.address(), Secret(kWireToken), "data", soon, nullptr, soon);
  try {
    s.writeAll(bytes.data(), bytes.size(), soon, nullptr);
  } catch (const Error&) {  // the door has closed it already
  }
  ::shutdown(s.descriptor(), SHUT_WR);
  collective::MeshOptions o;
  o.workers = o.ranks = 2, o.secret = Secret(kWireToken), o.peers = {"", ""}, o.door = &door;
  o.connectTimeout = 0.02, o.stepTimeout = 2;
  collective::Mesh mesh(o);
  std::vector<float> mine(64, 1.0f), total(64);
  mesh.allReduce({mine.data()}, total.data(), 64, collective::Tag::gradient(0));
}

inline std::string meshSeed() {
  using collective::FrameHeader;
  const auto frame = [](uint32_t round, uint64_t bytes) {
    const uint64_t tag = round == FrameHeader::kHello ? 0 : collective::Tag::gradient(0).value();
    const FrameHeader h{FrameHeader::kMagic, 1, round, 1, tag, bytes};
    return std::string(reinterpret_cast<const char*>(&h), sizeof h) + std::string(bytes, '\1');
  };
  return frame(FrameHeader::kHello, 0) + frame(FrameHeader::kScatter, 128) + frame(FrameHeader::kGather, 128);
}

// One end of the handshake with what the other would say, who does not know the token: whatever it is must be refused.
inline void readHandshake(const std::string& bytes, bool asServer) {
  Socket s = saying(bytes);
  if (asServer)
    proveAsServer(s, Secret(kWireToken), "data", Deadline::after(5), nullptr);
  else
    proveAsClient(s, Secret(kWireToken), "data", Deadline::after(5), nullptr);
  internal("a handshake without the token was taken for a good one");
}

inline std::vector<std::string> nodeSeeds() {
  std::string all;
  wire::NodeRequest r;
  r.mutable_set()->set_key("k"), r.mutable_set()->set_value("1");
  all += cluster::framed(r);
  r.mutable_look()->set_key("k");
  all += cluster::framed(r);
  r.mutable_open();
  all += cluster::framed(r);
  r.mutable_count()->set_queue("input");
  all += cluster::framed(r);
  auto* put = r.mutable_put();
  put->set_queue("input"), put->set_rows(2), put->set_bytes(16), put->set_follows(true), put->set_timeout(0);
  all += cluster::framed(r) + std::string(16, 'r');
  r.mutable_get()->set_queue("input"), r.mutable_get()->set_timeout(0);
  all += cluster::framed(r);
  r.mutable_done()->set_queue("input"), r.mutable_done()->set_bytes(16), r.mutable_done()->set_count(2);
  all += cluster::framed(r);
  return {all};
}

inline void readNode(const std::string& bytes) {
  node::Broker broker({"input", "output", "error"}, 1 << 20);
  node::Kept kept(".");
  node::HeldPort port(-1);
  node::Clients clients(Secret(kWireToken), "127.0.0.1",
                        {broker, kept, port, [](const auto&) {}, [](const auto&) {}, [](const auto&) {}});
  const Deadline soon = Deadline::after(5);
  Socket s = connectThroughDoor(clients.port(), Secret(kWireToken), "node", soon, nullptr, soon);
  try {
    s.writeAll(bytes.data(), bytes.size(), soon, nullptr);
    ::shutdown(s.descriptor(), SHUT_WR);
    char c = 0;
    for (;;) s.readAll(&c, 1, soon, nullptr);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::kTimeout) internal("the node neither answers nor closes the connection");
    throw;
  }
}

// What a host sends after its Job: rows, a note, the end; and bytes of a file, which nobody asks for here.
inline std::vector<std::string> hostSeeds() {
  std::string all;
  google::protobuf::io::StringOutputStream out(&all);
  const auto say = [&](const wire::Input& input) {
    google::protobuf::util::SerializeDelimitedToZeroCopyStream(input, &out);
  };
  wire::Input input;
  for (const int64_t first : {0, 2}) {
    auto* batch = input.mutable_rows()->mutable_batch();
    batch->Clear();
    batch->set_rows(2), batch->set_first(first);
    auto* id = batch->add_column();
    id->set_values("abc"), id->add_length(1), id->add_length(2);
    auto* values = batch->add_column();
    values->set_values(std::string(16, 'v')), values->set_width(8);
    say(input);
  }
  input.mutable_published()->set_iteration(7);
  say(input);
  input.mutable_end();
  say(input);
  const std::string rows = all;
  all.clear();
  input.mutable_bytes()->set_test(true), input.mutable_bytes()->set_offset(4096),
      input.mutable_bytes()->set_data("page");
  say(input);
  return {rows, all};
}

inline void readHostRows(const std::string& bytes) {
  wire::Job job;
  job.set_workers(1), job.set_ranks(1);
  job.mutable_train_rows()->set_records(4), job.mutable_train_rows()->set_description("rows");
  job.mutable_test_file()->set_size(8192), job.mutable_test_file()->set_description("file");
  worker::HostRows rows(
      job, false, [](const wire::Event&) {}, nullptr);
  google::protobuf::io::ArrayInputStream in(bytes.data(), static_cast<int>(bytes.size()));
  for (;;) {
    wire::Input input;
    bool over = false;
    if (!google::protobuf::util::ParseDelimitedFromZeroCopyStream(&input, &in, &over)) {
      if (over) break;
      badData("no message");
    }
    rows.accept(input);
  }
  rows.fail(Error(ErrorKind::kData, "the host has gone"));  // so that nobody waits for what has not come
  for (int64_t i = 0; i < 4; ++i)
    for (data::RowReader fields(rows.train->read(i).value); fields.more();) fields.next();
}

inline std::vector<Format> wireFormats() {
  constexpr char kClosed[] = "connection closed", kPipe[] = "Broken pipe";
  return {
      {"packets", {packetsOf({"one", std::string(200, 'x'), "three"})}, {}, readPackets},
      {"to-coordinator", {controlSeeds()[0]}, {}, readToCoordinator, 1, kClosed},
      {"to-member", {controlSeeds()[1]}, {}, readToMember, 1, kClosed},
      {"handshake", {"CREMA0020" + std::string(64, 'n')}, {}, [](const auto& b) { readHandshake(b, false); }, 1, kPipe},
      {"proof", {std::string(64, 'n')}, {}, [](const auto& b) { readHandshake(b, true); }, 4, kPipe},
      {"member", memberSeeds(), {}, readMember, 25},
      {"mesh", {meshSeed()}, {}, readMesh, 20},
      {"node", nodeSeeds(), {}, readNode, 20, kClosed},
      {"hostrows", hostSeeds(), {}, readHostRows, 20, "which nobody asked for"},
  };
}

}  // namespace crema::fuzz
