#include "node/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/child.h"
#include "base/deadline.h"
#include "base/error.h"

namespace crema::node {
namespace {

constexpr int kPayload = 3;  // the descriptor in which the program finds it

std::vector<char*> words(const google::protobuf::RepeatedPtrField<std::string>& all) {
  std::vector<char*> list;
  for (const auto& word : all) list.push_back(const_cast<char*>(word.c_str()));  // exec does not write to them
  list.push_back(nullptr);
  return list;
}

// In the child, between fork() and exec(): nothing is allocated. A process group of its own, so that all that it starts
// can be ended; it dies with the node.
[[noreturn]] void become(int memory, int lines, pid_t parent, const char* folder, char* const* arguments,
                         char* const* environment) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(3);
  for (int s : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) ::signal(s, SIG_DFL);
  const int null = ::open("/dev/null", O_RDONLY);
  ::dup2(null, STDIN_FILENO);
  ::dup2(lines, STDOUT_FILENO);
  ::dup2(lines, STDERR_FILENO);
  if (memory == kPayload)
    ::fcntl(memory, F_SETFD, 0);
  else
    ::dup2(memory, kPayload);
  if (::chdir(folder) != 0) ::dprintf(STDERR_FILENO, "crema: cannot go to the folder %s\n", folder);
  ::execve(arguments[0], arguments, environment);
  ::dprintf(STDERR_FILENO, "crema: error: cannot start %s: %s\n", arguments[0], std::strerror(errno));
  ::_exit(127);
}

}  // namespace

Program::Program(const wire::NodeInput::Compute& what, std::function<void(const std::string&)> ended)
    : ended_(std::move(ended)) {
  if (what.argument_size() == 0) invalid("a program without a name cannot be started");
  const Descriptor memory = memoryHolding(what.payload(), "the map function");
  const auto arguments = words(what.argument()), environment = words(what.environment());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    ioError("cannot make a pipe for the program: {}; raise the limit of open files (ulimit -n)", systemError(errno));
  Descriptor lines(ends[0]);
  const Descriptor in(ends[1]);
  const pid_t parent = ::getpid();
  const std::string folder = what.folder().empty() ? "." : what.folder();
  pid_ = ::fork();
  if (pid_ == 0) become(memory.get(), in.get(), parent, folder.c_str(), arguments.data(), environment.data());
  if (pid_ < 0) ioError("cannot start the program: {}; {}", systemError(errno), startRemedy(errno));
  lines_ = std::make_unique<Lines>(std::move(lines));
  waiter_ = std::thread([this] { wait(); });
}

Program::~Program() {
  end(0);
  waiter_.join();
}

// What it has started may keep the pipe open: those are ended with it, so that its last lines are all there.
void Program::wait() {
  siginfo_t how{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &how, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  ::kill(-pid_, SIGKILL);
  lines_->end(Lines::kLastWords);  // what it started in another session may keep the pipe open for ever
  int status = 0;
  {
    const MutexLock lock(mutex_);  // end() must not signal a number that another process has by then
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    over_ = true;
  }
  ended_(story(status));
}

std::string Program::story(int status) {
  if (status == 0) return "";
  std::string text = howItEnded(status);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    text += killed_ ? ", as it did not end when it was asked to"
                    : ", which the kernel sends when memory is short: raise spark.executor.memoryOverhead, of which "
                      "programs have theirs on YARN and Kubernetes, or make batches smaller";
  return text + lines_->last(aborted_ ? Lines::kKept : Lines::kShown);
}

void Program::end(double grace) { endBy(SIGTERM, -pid_, grace); }

void Program::abort(double grace) {
  aborted_ = true;
  endBy(SIGABRT, pid_, grace);
}

void Program::endBy(int signal, pid_t whom, double grace) {
  const Deadline deadline = Deadline::after(grace);
  const auto send = [this](pid_t to, int number) {
    const MutexLock lock(mutex_);
    if (!over_) ::kill(to, number);
  };
  if (grace > 0) {
    send(whom, signal);
    send(-pid_, SIGCONT);  // one that was stopped can then say where it stands
  }
  while (!over_) {
    if (deadline.passed()) {
      killed_ = true;
      send(-pid_, SIGKILL);
    }
    ::usleep(5000);
  }
}

}  // namespace crema::node
