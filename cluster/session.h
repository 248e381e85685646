// A worker's line to the coordinator: hello, signs of life every second, reports, and the coordinator's word when the
// run is over. The reading and beating thread is never busy with anything else.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cluster/channel.h"
#include "cluster/host_rows.h"
#include "control.pb.h"

namespace crema::cluster {

ErrorKind kindOf(const std::string& text);      // of another process's error; kPeer when it is none that we know
ErrorKind kindForAll(const std::string& text);  // what is wrong with the input stays so for all, else kPeer

class Session {
 public:
  // Connects, proves the token, says hello. `interrupt` is raised with the coordinator's story when it aborts the run
  // or is gone. host: what comes from the host counts as progress while a worker waits for it.
  Session(const wire::Job& job, const control::ToCoordinator::Hello& hello, Interrupt& interrupt,
          const HostSigns* host = nullptr);
  ~Session();

  void ready(const std::string& stateDigest, const std::string& records);
  control::ToWorker::Start waitForStart();  // throws what interrupts it
  void report(const wire::Event& event);
  void failed(const Error& error);          // never throws
  void sendModel(const std::string& path);  // returns when the coordinator has it on its disk
  void finished(int64_t iteration, const std::string& digest);
  void waitForBye();
  // After an error of the data plane: gives the coordinator a moment to tell the better story, and returns that one if
  // it comes.
  std::optional<Error> coordinatorsStory(double seconds);

  // Written by the training thread, sent with every beat.
  std::atomic<int64_t> iteration{0}, passes{0};
  std::atomic<bool> waiting{false};
  std::atomic<double> computeSeconds{0};

 private:
  void listen();
  void beat();
  bool waitFor(const std::function<bool()>& condition, double seconds);
  void waitForWord(const std::function<bool()>& said);

  Channel channel_;
  double timeout_;
  Interrupt& interrupt_;
  const HostSigns* host_;
  Interrupt closing_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<control::ToWorker::Start> start_;
  std::optional<Error> story_;
  bool kept_ = false, bye_ = false;
  std::thread listener_, beater_;
};

}  // namespace crema::cluster
