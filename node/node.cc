// length: one object, the node; what has a name of its own is in broker.h, clients.h, lines.h, program.h and reports.h.
#include "node/node.h"

#include <atomic>
#include <list>
#include <optional>

#include "base/log.h"
#include "base/waiting.h"
#include "cluster/patience.h"
#include "cluster/secret.h"
#include "cluster/session.h"
#include "node/broker.h"
#include "node/clients.h"
#include "node/executor_watch.h"
#include "node/lines.h"
#include "node/nodes.h"
#include "node/program.h"
#include "node/reports.h"

namespace crema::node {
namespace {

constexpr double kTurn = 0.02, kReport = 1;  // seconds: between two looks at what was asked, and between two reports
constexpr double kProgramGrace = 3;          // for a program that is asked to end
constexpr double kUntilItEnds = 1e8;

}  // namespace

class Node::State {
 public:
  State(const wire::Job& job, std::function<void(const wire::NodeEvent&)> emit)
      : job_(job),
        emit_(std::move(emit)),
        broker_({job.node().queue().begin(), job.node().queue().end()}, job.node().budget()),
        kept_(job.node().work_folder().empty() ? "." : job.node().work_folder()),
        port_(job.node().port()),
        lines_(Descriptor(job.node().lines())),
        clients_(cluster::secretOf(job), job.node().alone() ? "" : job.host(),
                 {broker_, kept_, port_, [this](const std::string& story) { programFailed(story); },
                  [this](const std::string& value) { stateSet(value); },
                  [this](const std::string& story) { programStuck(story); }}),
        executor_(static_cast<pid_t>(job.node().executor()), interrupt_, [this] {
          stop(Error(ErrorKind::kStopped, fmt::format("the executor (pid {}) has ended", job_.node().executor())));
        }) {}
  ~State() {
    end();
    program_.reset();
  }

  void take(const wire::NodeInput& input) {
    const MutexLock lock(mutex_);
    if (input.has_join()) about_ = input.join().about();
    if (input.has_compute()) starts_.push_back(input.compute());
    if (input.has_here()) here_ = true;
    if (input.has_leave()) left_ = true;
    if (input.has_ended() && !input.ended().failed().empty())
      setFailed(stuck_ ? fmt::format("the program {}; it stands here:\n{}", *stuck_, input.ended().failed())
                       : input.ended().failed());
    if (input.has_ended()) programOver_ = left_ = true;
    changed_.notify_all();
  }

  void hostGone() {
    lines_.end(Lines::kLastWords);
    const MutexLock lock(mutex_);
    if (left_) return;
    if (here_)
      setFailed(
          "the process in which the program ran, Spark's Python worker, is gone: it was killed by a signal (number 9 "
          "is what the kernel sends when memory is short: raise spark.executor.memoryOverhead) or left by os._exit(), "
          "or its task was cancelled" +
          lastLines());
    else
      stop(Error(ErrorKind::kStopped, "stdin was closed: the task that started this node is gone"));
  }

  void run() {
    wire::NodeEvent ready;
    ready.mutable_ready()->set_address(clients_.address());
    ready.mutable_ready()->set_port(port_.number());
    ready.mutable_ready()->set_feed(clients_.port());
    emit_(ready);
    if (job_.node().alone()) return alone();
    cluster::SessionOptions o{job_.coordinator(),
                              cluster::secretOf(job_),
                              "a node",
                              job_.join_timeout(),
                              job_.step_timeout(),
                              true,
                              [this](const wire::Note& note) { noted(note); }};
    const auto hello = helloOf(job_, waitForJoin());
    cluster::Session session(o, hello, interrupt_);
    session.waiting = true;  // what the program does, and for how long, is its own matter
    try {
      serve(session);
    } catch (const Error& e) {
      broker_.fail(e);
      if (!interrupt_.raised()) {
        session.failed(e);
        session.coordinatorsError(cluster::patience::kItsError);
      }
      stop(e);
      throw;
    }
  }

  bool started() const { return started_; }

  void end() {
    stop(Error(ErrorKind::kStopped, "the node ends"));
    for (auto* program : {&program_, &beside_})
      if (*program) (*program)->end(kProgramGrace);
  }

 private:
  void alone() {
    try {
      pauseFor(kUntilItEnds, &interrupt_);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kStopped) throw;
    }
  }

  std::string waitForJoin() {
    MutexLock lock(mutex_);
    waitUntil(changed_, lock, &interrupt_, [this]() CREMA_REQUIRES(mutex_) { return about_.has_value(); });
    return *about_;
  }

  void serve(cluster::Session& session) {
    session.ready("", "");
    const control::ToMember::Start start = session.waitForStart();
    started_ = true;
    wire::NodeEvent started;
    *started.mutable_started()->mutable_about() = start.about();
    started.mutable_started()->set_member(start.member());
    emit_(started);
    double reported = monotonicSeconds();
    while (!ended()) {
      interrupt_.check();
      startPrograms();
      reports_.send(session, start.member(), programOver(), [this](const std::string& story) { programStuck(story); });
      endStuckProgram();
      if (monotonicSeconds() - reported < kReport) continue;
      reported = monotonicSeconds();
      reports_.sendFed(session, start.member());
    }
    reports_.sendFed(session, start.member());
    session.finished(0, "");
    if (!session.waitForBye()) internal("a node was told to go on with others; runs of nodes have one generation");
    wire::NodeEvent over;
    over.mutable_over();
    emit_(over);
  }

  // Waits a moment; true when there is nothing left to do here. Throws the program's failure.
  bool ended() {
    bool end = false;
    {
      MutexLock lock(mutex_);
      waitUntil(changed_, lock, Deadline::after(kTurn), nullptr, [this]() CREMA_REQUIRES(mutex_) {
        return failed_ || (stuck_ && !stuckEnded_) || reports_.waiting() || !starts_.empty() ||
               (programOver_ && (endAsked_ || here_));
      });
      if (failed_) throw Error(ErrorKind::kData, *failed_);
      if (programOver_ && (endAsked_ || here_)) return true;
      end = endServers_ && stays_;
    }
    if (end) program_->end(kProgramGrace);
    return false;
  }

  // Python's faulthandler writes the stacks of all threads.
  std::string lastLines() {
    const std::string all = lines_.last(Lines::kKept);
    return all.find("\n  Fatal Python error: ") == std::string::npos ? lines_.last(Lines::kShown) : all;
  }

  // In the thread of run(): the kernel ends a program with the thread that has started it.
  void startPrograms() {
    std::list<wire::NodeInput::Compute> starts;
    {
      const MutexLock lock(mutex_);
      starts.swap(starts_);
    }
    for (const auto& what : starts) start(what);
  }

  void start(const wire::NodeInput::Compute& what) {
    if (what.beside()) {
      beside_ = std::make_unique<Program>(what, [](const std::string& story) {
        if (!story.empty()) LOG_WARNING("a process beside the program {}", story);
      });
      return;
    }
    {
      const MutexLock lock(mutex_);
      stays_ = what.stays();
    }
    program_ = std::make_unique<Program>(what, [this](const std::string& story) { programEnded(story); });
    wire::NodeEvent computing;
    computing.mutable_computing()->set_pid(program_->pid());
    emit_(computing);
  }

  void programEnded(const std::string& story) {
    const MutexLock lock(mutex_);
    if (stuckEnded_)
      setFailed(fmt::format("the program {}; it has been asked where it stands, and {}", *stuck_,
                            story.empty() ? "ended then" : story));
    else if (!story.empty() && !(stays_ && endServers_))
      setFailed("the program " + story);
    broker_.programEnded();
    programOver_ = true;
    changed_.notify_all();
  }

  // Whoever waits for it says what for; the first counts.
  void programStuck(const std::string& story) {
    const MutexLock lock(mutex_);
    if (stuck_ || programOver_ || (!program_ && !here_)) return;
    stuck_ = story;
    changed_.notify_all();
  }

  // Where it stands comes with its last lines; of a program that runs in the task, from there, in Ended.
  void endStuckProgram() {
    {
      const MutexLock lock(mutex_);
      if (!stuck_ || stuckEnded_) return;
      stuckEnded_ = true;
    }
    if (program_) return program_->abort(kProgramGrace);
    wire::NodeEvent event;
    event.mutable_stuck();
    emit_(event);
    MutexLock lock(mutex_);
    if (!waitUntil(changed_, lock, Deadline::after(kProgramGrace), nullptr,
                   [this]() CREMA_REQUIRES(mutex_) { return failed_.has_value(); }))
      setFailed(fmt::format("the program {}, and its task does not answer", *stuck_));
  }

  void programFailed(const std::string& story) {
    const MutexLock lock(mutex_);
    setFailed(story);
  }

  // The first error counts: an exception's is better than that of the process which ends after it.
  void setFailed(const std::string& story) CREMA_REQUIRES(mutex_) {
    if (!failed_) failed_ = story;
    broker_.fail(Error(ErrorKind::kData, *failed_));
    changed_.notify_all();
  }

  void stateSet(const std::string& value) {
    wire::NodeNote note;
    note.mutable_state()->set_state(value);
    reports_.say(note);
    changed_.notify_all();
  }

  // From the session's listening thread.
  void noted(const wire::Note& note) {
    wire::NodeNote said;
    if (!said.ParseFromString(note.text())) return;
    if (said.has_end()) broker_.endFeeds(job_.node().unfed() ? "" : said.end().failed());
    if (!job_.node().unfed()) {
      if (said.has_epoch()) broker_.endEpoch(said.epoch());
      reports_.asked(said);
    }
    if (said.has_stuck() && !job_.node().unfed()) programStuck(said.stuck().story());  // servers wait for others
    const MutexLock lock(mutex_);
    if (said.has_end()) endAsked_ = true;
    if (said.has_end_servers()) endServers_ = true;
    changed_.notify_all();
  }

  bool programOver() {
    const MutexLock lock(mutex_);
    return programOver_;
  }

  void stop(const Error& why) {
    broker_.fail(why);
    interrupt_.raise(why);
    changed_.notify_all();
  }

  const wire::Job job_;
  const std::function<void(const wire::NodeEvent&)> emit_;
  Interrupt interrupt_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> about_ CREMA_GUARDED_BY(mutex_);
  std::optional<std::string> failed_ CREMA_GUARDED_BY(mutex_);
  bool here_ CREMA_GUARDED_BY(mutex_) = false, left_ CREMA_GUARDED_BY(mutex_) = false;
  std::atomic<bool> started_ = false;  // all nodes of the run were there
  bool stays_ CREMA_GUARDED_BY(mutex_) = false, programOver_ CREMA_GUARDED_BY(mutex_) = false;
  bool endAsked_ CREMA_GUARDED_BY(mutex_) = false, endServers_ CREMA_GUARDED_BY(mutex_) = false;
  bool stuckEnded_ CREMA_GUARDED_BY(mutex_) = false;
  std::optional<std::string> stuck_ CREMA_GUARDED_BY(mutex_);  // why the program is to be ended
  std::list<wire::NodeInput::Compute> starts_ CREMA_GUARDED_BY(mutex_);
  Broker broker_;
  Kept kept_;
  HeldPort port_;
  Lines lines_;  // of a program that runs in the process which has started the node
  Reports reports_{broker_, kept_, interrupt_};
  std::unique_ptr<Program> program_, beside_;
  Clients clients_;  // the last members: their threads use the others
  ExecutorWatch executor_;
};

Node::Node(const wire::Job& job, std::function<void(const wire::NodeEvent&)> emit)
    : state_(std::make_unique<State>(job, std::move(emit))) {}
Node::~Node() = default;
void Node::take(const wire::NodeInput& input) { state_->take(input); }
void Node::hostGone() { state_->hostGone(); }
void Node::run() { state_->run(); }
bool Node::started() const { return state_->started(); }
void Node::end() { state_->end(); }

}  // namespace crema::node
