// Places in one stretch of memory for values that are not all needed at the same time.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "net/net.h"

namespace crema::net {

struct Need {
  Blob* blob;
  int from, to;  // the first and the last layer, or moment, that needs its values
  bool ofGradient = false;

  int64_t size() const { return (int64_t{blob->count()} + 15) / 16 * 16; }
  bool meets(const Need& o) const { return from <= o.to && o.from <= to; }
};

struct Placement {
  std::vector<Need> needs;
  std::vector<int64_t> places;  // of each: its first element
  int64_t whole = 0;            // elements
  bool worthIt() const;         // there is something, and a blob can hold it
};

// Largest first, each at the lowest place where it meets none that is needed at the same time.
Placement placed(std::vector<Need> needs);

// Of each blob of a net the one in whose memory it is: itself, or the bottom of what made it a view (Split, Reshape).
std::map<const Blob*, Blob*> memoryOwners(const Net& net);

}  // namespace crema::net
