#include "base/handshake.h"

#include <sodium.h>

#include <string>

#include "base/random_bytes.h"

namespace crema {
namespace {

constexpr char kMagic[] = "CREMA001";
constexpr size_t kMagicSize = 8, kNonce = 32, kMac = crypto_auth_hmacsha256_BYTES;

std::string mac(std::string_view token, std::string_view role, std::string_view purpose, std::string_view nonces) {
  unsigned char key[crypto_hash_sha256_BYTES], out[kMac];
  crypto_hash_sha256(key, reinterpret_cast<const unsigned char*>(token.data()), token.size());
  std::string text(role);
  text.append(1, '\0').append(purpose).append(1, '\0').append(nonces);
  crypto_auth_hmacsha256(out, reinterpret_cast<const unsigned char*>(text.data()), text.size(), key);
  return std::string(reinterpret_cast<char*>(out), kMac);
}

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

void proveAsServer(const Socket& s, std::string_view token, std::string_view purpose, Deadline deadline,
                   const Interrupt* interrupt, const std::function<void()>& accept) {
  const std::string mine = randomBytes(kNonce), hello = std::string(kMagic, kMagicSize) + mine;
  s.writeAll(hello.data(), hello.size(), deadline, interrupt);
  std::string answer(kNonce + kMac, '\0');
  s.readAll(answer.data(), answer.size(), deadline, interrupt);
  const std::string nonces = mine + answer.substr(0, kNonce);
  if (!same(answer.substr(kNonce), mac(token, "client", purpose, nonces)))
    throw Error(ErrorKind::kPeer, fmt::format("{} does not hold the token of this cluster; refused", s.peer()));
  if (accept) accept();
  const std::string proof = mac(token, "server", purpose, nonces);
  s.writeAll(proof.data(), proof.size(), deadline, interrupt);
}

void proveAsClient(const Socket& s, std::string_view token, std::string_view purpose, Deadline deadline,
                   const Interrupt* interrupt) {
  std::string hello(kMagicSize + kNonce, '\0');
  s.readAll(hello.data(), hello.size(), deadline, interrupt);
  if (hello.substr(0, kMagicSize) != std::string(kMagic, kMagicSize))
    throw Error(
        ErrorKind::kPeer,
        fmt::format("{} does not speak this protocol; is the address right, and are both ends the same version?",
                    s.peer()));
  const std::string mine = randomBytes(kNonce), nonces = hello.substr(kMagicSize) + mine;
  const std::string answer = mine + mac(token, "client", purpose, nonces);
  s.writeAll(answer.data(), answer.size(), deadline, interrupt);
  std::string proof(kMac, '\0');
  try {
    s.readAll(proof.data(), proof.size(), deadline, interrupt);
  } catch (Error& e) {
    if (e.kind() == ErrorKind::kPeer) e.addFrame("while proving the token; a wrong token looks like this");
    throw;
  }
  if (!same(proof, mac(token, "server", purpose, nonces)))
    throw Error(ErrorKind::kPeer, fmt::format("{} does not hold the token of this cluster; not joined", s.peer()));
}

}  // namespace crema
