#include "base/handshake.h"

#include <sodium.h>

#include <string>

#include "base/random_bytes.h"

namespace crema {
namespace {

constexpr char kMagic[] = "CREMA002";
constexpr size_t kMagicSize = 8, kNonce = 32, kMac = crypto_auth_hmacsha256_BYTES;
constexpr char kNone = '0', kSummed = '1', kSealed = '2';

std::string mac(std::string_view token, std::string_view role, std::string_view purpose,
                std::string_view protectionAndNonces) {
  unsigned char key[crypto_hash_sha256_BYTES], out[kMac];
  crypto_hash_sha256(key, reinterpret_cast<const unsigned char*>(token.data()), token.size());
  std::string text(role);
  text.append(1, '\0').append(purpose).append(1, '\0').append(protectionAndNonces);
  crypto_auth_hmacsha256(out, reinterpret_cast<const unsigned char*>(text.data()), text.size(), key);
  return std::string(reinterpret_cast<char*>(out), kMac);
}

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

// What the server has said, and both proofs hold: nobody between the two can have changed it.
void protect(Socket& s, char protection, const std::string& outKey, const std::string& inKey) {
  if (protection == kSummed) s.protect(std::make_unique<Packets>(std::nullopt));
  if (protection == kSealed) s.protect(std::make_unique<Packets>(PacketKeys{outKey, inKey}));
}

}  // namespace

void proveAsServer(Socket& s, const Secret& secret, std::string_view purpose, Deadline deadline,
                   const Interrupt* interrupt, const std::function<void()>& accept) {
  const std::string mine = (s.local()       ? kNone
                            : secret.sealed ? kSealed
                                            : kSummed) +
                           randomBytes(kNonce),
                    hello = std::string(kMagic, kMagicSize) + mine;
  s.writeAll(hello.data(), hello.size(), deadline, interrupt);
  std::string answer(kNonce + kMac, '\0');
  s.readAll(answer.data(), answer.size(), deadline, interrupt);
  const auto macOf = [&, nonces = mine + answer.substr(0, kNonce)](std::string_view role) {
    return mac(secret.token, role, purpose, nonces);
  };
  if (!same(answer.substr(kNonce), macOf("client")))
    throw Error(ErrorKind::kPeer, fmt::format("{} does not hold the token of this cluster; refused", s.peer()));
  if (accept) accept();
  const std::string proof = macOf("server");
  s.writeAll(proof.data(), proof.size(), deadline, interrupt);
  protect(s, mine[0], macOf("server writes"), macOf("client writes"));
}

void proveAsClient(Socket& s, const Secret& secret, std::string_view purpose, Deadline deadline,
                   const Interrupt* interrupt) {
  std::string hello(kMagicSize + 1 + kNonce, '\0');
  s.readAll(hello.data(), hello.size(), deadline, interrupt);
  if (hello.substr(0, kMagicSize) != std::string(kMagic, kMagicSize))
    throw Error(
        ErrorKind::kPeer,
        fmt::format("{} does not speak this protocol; is the address right, and are both ends the same version?",
                    s.peer()));
  const char protection = hello[kMagicSize];
  const std::string mine = randomBytes(kNonce);
  const auto macOf = [&, nonces = hello.substr(kMagicSize) + mine](std::string_view role) {
    return mac(secret.token, role, purpose, nonces);
  };
  const std::string answer = mine + macOf("client");
  s.writeAll(answer.data(), answer.size(), deadline, interrupt);
  std::string proof(kMac, '\0');
  try {
    s.readAll(proof.data(), proof.size(), deadline, interrupt);
  } catch (Error& e) {
    if (e.kind() == ErrorKind::kPeer)
      e.addFrame("while proving the token; a wrong one looks like this: give both ends the same");
    throw;
  }
  if (!same(proof, macOf("server")))
    throw Error(ErrorKind::kPeer, fmt::format("{} does not hold the token of this cluster; not joined", s.peer()));
  protect(s, protection, macOf("client writes"), macOf("server writes"));
}

}  // namespace crema
