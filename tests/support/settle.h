// Waits until the other threads of this process have done what there was to do: for tests that say "and now nothing
// happens", on a machine that may be busy. A wait of so many milliseconds would be a guess.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

namespace crema::test {

struct ThreadState {
  bool sleeps = false;
  long turns = 0;  // how often it has gone to sleep of itself
};

// Of all threads but the caller, from /proc/self/task/ID/status; a thread that waits for a processor does not sleep.
inline std::map<std::string, ThreadState> otherThreads() {
  std::map<std::string, ThreadState> threads;
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    const std::string id = task.path().filename();
    if (id == std::to_string(gettid())) continue;
    std::ifstream status(task.path() / "status");
    ThreadState thread;
    for (std::string key; status >> key; status.ignore(1000, '\n')) {
      std::string value;
      if (key == "State:") status >> value, thread.sleeps = value == "S";
      if (key == "voluntary_ctxt_switches:") status >> thread.turns, threads[id] = thread;
    }
  }
  return threads;
}

// Every thread has had two turns, or slept each time it was looked at (for 16 ms, thrice what a thread sleeps that waits
// by a test's clock). Three times over: from a socket by the thread that reads it to the one that takes messages.
inline void settle() {
  for (int link = 0; link < 3; ++link) {
    const auto before = otherThreads();
    std::map<std::string, int> awake;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (int look = 0;; ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      bool all = look >= 8;
      for (const auto& [id, now] : otherThreads()) {
        const auto was = before.find(id);
        const bool turned = was != before.end() && now.turns - was->second.turns >= 2;
        if (!now.sleeps) awake[id] = look;
        all = all && (turned || (now.sleeps && (!awake.count(id) || look - awake[id] >= 8)));
      }
      if (all) break;
      ASSERT_LT(std::chrono::steady_clock::now(), end) << "a thread of this process works all the time";
    }
  }
}

}  // namespace crema::test
