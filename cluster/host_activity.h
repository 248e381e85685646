// Messages of the program that started this process, counted: they show that it lives.
#pragma once
#include <atomic>
#include <cstdint>

namespace crema::cluster {

struct HostActivity {
  std::atomic<int64_t> arrived{0};    // rows, ranges of files, Published and Preparing messages
  std::atomic<int64_t> preparing{0};  // Preparing messages alone
};

}  // namespace crema::cluster
