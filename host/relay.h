// Carries bytes between a process that started this one and a port of the run: for Python, whose library has no cipher.
//
// Bytes on stdin, which is a socket: token size u32 little endian · token; the answer is '+', or '-' · size u32 · why. Then
// what either end sends goes to the other, until one of them closes.
#pragma once
#include <string>

namespace crema::host {

// seconds: until the port must have answered. Returns when an end has closed.
void relay(const std::string& address, const std::string& purpose, double seconds);

}  // namespace crema::host
