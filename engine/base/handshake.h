// Mutual proof that both ends hold `token` (HMAC-SHA-256 over fresh nonces from both); `purpose` keeps control and data
// apart. The token itself never travels. A wrong proof throws kPeer, and the other end gets no answer. accept() is
// called when the client's proof is right, before the client is answered.
//
// Bytes: server -> "CREMA001" nonceS[32]; client -> nonceC[32] mac[32]; server -> mac[32].
// mac = HMAC-SHA-256(SHA-256(token), role "\0" purpose "\0" nonceS nonceC), role "client" or "server": a proof cannot
// be sent back.
#pragma once
#include <functional>
#include <string_view>

#include "base/socket.h"

namespace crema {

void proveAsServer(const Socket& s, std::string_view token, std::string_view purpose, Deadline deadline,
                   const Interrupt* interrupt, const std::function<void()>& accept = nullptr);
void proveAsClient(const Socket& s, std::string_view token, std::string_view purpose, Deadline deadline,
                   const Interrupt* interrupt);

}  // namespace crema
