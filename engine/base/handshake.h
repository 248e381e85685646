// Mutual proof that both ends hold the token of a run (HMAC-SHA-256 over fresh nonces from both); `purpose` keeps control
// and data apart. The token itself never travels. A wrong proof throws kPeer, and the other end gets no answer. accept()
// is called when the client's proof is right, before the client is answered. On return what travels is protected.
//
// Bytes: server -> "CREMA002" protection nonceS[32]; client -> nonceC[32] mac[32]; server -> mac[32].
// mac = HMAC-SHA-256(SHA-256(token), role "\0" purpose "\0" protection nonceS nonceC), role "client" or "server": a proof
// cannot be sent back. With the roles "client writes" and "server writes" the same are the keys of sealed packets.
// protection: '0' none, between processes of one machine; '1' sums, '2' seals (base/packets.h). The server decides; as
// the proofs are of it too, nobody between the two can talk them out of it.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "base/socket.h"

namespace crema {

// What the processes of a run share. sealed: a server lets its clients in with sealed packets only.
struct Secret {
  Secret(std::string t, bool s = false) : token(std::move(t)), sealed(s) {}  // NOLINT: most runs have a token alone
  Secret(const char* t) : token(t) {}                                        // NOLINT
  std::string token;
  bool sealed = false;
};

void proveAsServer(Socket& s, const Secret& secret, std::string_view purpose, Deadline deadline,
                   const Interrupt* interrupt, const std::function<void()>& accept = nullptr);
void proveAsClient(Socket& s, const Secret& secret, std::string_view purpose, Deadline deadline,
                   const Interrupt* interrupt);

}  // namespace crema
