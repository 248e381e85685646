#include "host/local_cluster.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "base/log_files.h"
#include "base/random_bytes.h"
#include "base/thread_pool.h"
#include "cluster/coordinator.h"
#include "cluster/job.h"
#include "host/job_io.h"
#include "host/progress_line.h"
#include "host/signals.h"

namespace crema::host {
namespace {

// A child worker: its stdin stays open while this process lives, its stderr is relayed line by line.
class Child {
 public:
  explicit Child(const wire::Job& job) {
    int in[2], err[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0)
      ioError("cannot make pipes for a worker: {}", systemError(errno));
    pid_ = ::fork();
    if (pid_ < 0) ioError("cannot start a worker: {}", systemError(errno));
    if (pid_ == 0) become(in[0], err[1]);
    ::close(in[0]), ::close(err[1]);
    stdin_ = in[1];
    relay_ = std::thread([fd = err[0]] { relay(fd); });
    try {
      writeDelimited(stdin_, job);
    } catch (const Error&) {  // it has ended already; watch() says how
    }
  }
  ~Child() {
    end(0);
    if (relay_.joinable()) relay_.join();
  }
  Child(const Child&) = delete;

  // A message and not a signal, as a child that has just started does not handle signals yet.
  void send(train::Request request) {
    wire::Input input;
    input.mutable_wish()->set_snapshot(train::wantsSnapshot(request)),
        input.mutable_wish()->set_stop(train::wantsStop(request));
    try {
      if (stdin_ >= 0) writeDelimited(stdin_, input);
    } catch (const Error&) {  // it has ended; ended() says how
    }
  }

  // The way it ended, if by itself and with an error; else empty.
  std::string ended() {
    int status = 0;
    if (pid_ < 0 || ::waitpid(pid_, &status, WNOHANG) != pid_) return "";
    const pid_t was = std::exchange(pid_, -1);
    if (WIFSIGNALED(status)) return fmt::format("process {} was ended by signal {}", was, WTERMSIG(status));
    return WEXITSTATUS(status) ? fmt::format("process {} ended with exit code {}", was, WEXITSTATUS(status)) : "";
  }

  // Waits up to `grace` seconds for the child, then kills it.
  void end(double grace) {
    if (pid_ < 0) return;
    if (stdin_ >= 0 && grace <= 0) ::close(stdin_), stdin_ = -1;
    const Deadline deadline = Deadline::after(grace);
    int status = 0;
    while (::waitpid(pid_, &status, WNOHANG) == 0) {
      if (deadline.passed()) {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, &status, 0);
        break;
      }
      ::usleep(5000);
    }
    pid_ = -1;
    if (stdin_ >= 0) ::close(stdin_), stdin_ = -1;
  }

 private:
  // In the child: own process group, so that Ctrl-C reaches only the parent, which passes it on as one request.
  [[noreturn]] static void become(int in, int err) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The same for a SIGTERM that a scheduler sends to all processes; workers keep it ignored.
    ::signal(SIGTERM, SIG_IGN);
    ::dup2(in, STDIN_FILENO);
    ::dup2(err, STDERR_FILENO);
    int null = ::open("/dev/null", O_WRONLY);
    if (null < 0) null = ::memfd_create("unread", 0);  // a chroot may have no /dev
    ::dup2(null, STDOUT_FILENO);
    // Without /proc (in a chroot): the path with which the kernel started this program.
    const auto* started = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
    // Their log lines are relayed by this process, to its log files too.
    const std::string lowest = std::to_string(logging().lowest);
    const char* prefix = logging().prefix ? "-log_prefix" : "-nolog_prefix";
    for (const char* self : {"/proc/self/exe", started})
      if (self)
        ::execl(self, "crema", "worker", "-job", "-", "-logtostderr", prefix, "-minloglevel", lowest.c_str(),
                static_cast<char*>(nullptr));
    ::dprintf(STDERR_FILENO, "crema: error: cannot start %s again as a worker\n",
              started ? started : "this executable");
    ::_exit(127);
  }

  static void relay(int fd) {
    std::string line;
    char buffer[4096];
    for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR);)
      for (ssize_t i = 0; i < n; ++i) {
        if (buffer[i] != '\n') {
          line += buffer[i];
          continue;
        }
        relayLine(line);
        line.clear();
      }
    if (!line.empty()) relayLine(line);
    ::close(fd);
  }

  pid_t pid_ = -1;
  int stdin_ = -1;
  std::thread relay_;
};

void show(const wire::Event& event) {
  if (event.has_progress()) {
    const auto& p = event.progress();
    showProgress({p.iteration(), p.max_iter(), p.loss(), p.lr(), p.records_per_second(), p.seconds_left()},
                 p.slowest_worker());
  }
  if (event.has_joined())
    LOG_INFO("worker {} has joined ({} of {})", event.joined().worker(), event.joined().have(), event.joined().want());
}

// A signal to this process becomes a message to worker 0, whose spare floats carry it to all; a stop is sent to all
// workers, so that each ends its share of a long test. A child that ends before it has joined ends the run, after three
// seconds for a better error message.
void watch(const std::vector<std::unique_ptr<Child>>& children, const std::atomic<bool>& over, Interrupt& lost) {
  std::string cause;
  Deadline moment = Deadline::after(0);
  while (!over) {
    const train::Request r = polledRequest();
    if (r != train::Request::kNone)
      for (size_t w = 0; w < (train::wantsStop(r) ? children.size() : 1); ++w) children[w]->send(r);
    for (size_t w = 0; w < children.size() && cause.empty(); ++w)
      if (const std::string how = children[w]->ended(); !how.empty())
        cause = fmt::format("worker {} is gone: {}; its last lines are above", w, how), moment = Deadline::after(3);
    if (!cause.empty() && moment.passed()) lost.raise(Error(ErrorKind::kPeer, cause));
    ::usleep(20000);
  }
}

}  // namespace

void runLocalCluster(const train::RunOptions& options, const std::string& model, double joinTimeout,
                     double stepTimeout) {
  wire::Job job = cluster::jobOf(options);
  job.set_model(model);
  job.set_join_timeout(joinTimeout), job.set_step_timeout(stepTimeout);
  job.set_host(localHost()), job.set_token(randomBytes(32));
  cluster::Coordinator coordinator(cluster::coordinatorOf(job), show);
  std::vector<std::unique_ptr<Child>> children;
  for (int w = 0; w < job.workers(); ++w) {
    wire::Job mine = job;
    mine.set_worker(w);
    mine.set_coordinator(coordinator.address());
    mine.set_coordinator_listens(true);
    if (mine.threads() <= 0) mine.set_threads(std::max(1, availableCores() / job.workers()));
    children.push_back(std::make_unique<Child>(mine));
  }
  std::atomic<bool> over{false};
  Interrupt lost;
  std::thread watcher([&] { watch(children, over, lost); });
  const auto join = [&] {
    over = true, watcher.join();
    endProgress();
  };
  try {
    coordinator.run(&lost);
  } catch (...) {
    join();
    for (auto& c : children) c->end(2);
    throw;
  }
  join();
  for (auto& c : children) c->end(5);
}

}  // namespace crema::host
