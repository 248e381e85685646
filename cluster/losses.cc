#include "cluster/losses.h"

#include "cluster/patience.h"

namespace crema::cluster {

int Losses::ofItsMachine(int member, double now) {
  std::vector<double>& times = failures_[member];
  std::erase_if(times, [now](double at) { return now - at > patience::kFailuresIn; });
  times.push_back(now);
  return static_cast<int>(times.size());
}

std::string Losses::often(int time) {
  return time < 2 ? "" : fmt::format(", for the {} time within an hour", time == 2 ? "second" : "third");
}

}  // namespace crema::cluster
