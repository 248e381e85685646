#include "host/net_server.h"

#include <condition_variable>
#include <deque>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/mutex.h"
#include "host/client_images.h"
#include "host/client_net.h"
#include "host/job_io.h"
#include "host/stdin_reader.h"

namespace crema::host {
namespace {

// Requests, read beside the work, so that the end of stdin is noticed at once and interrupts the running request.
class Inbox {
 public:
  void read() {
    readStdin<engine::Request>("Request",
                               {"the client of this process", interrupt_, [this](const Error& why) { close(why); }},
                               [this](engine::Request& r) { add(std::move(r)); });
  }
  // Nothing: the client is gone. Waits without a deadline, as a client may think for hours; the end of stdin closes.
  std::optional<engine::Request> next() {
    MutexLock lock(mutex_);
    changed_.wait(lock.standard(), [&]() CREMA_REQUIRES(mutex_) { return closed_ || !waiting_.empty(); });
    if (closed_) return std::nullopt;
    engine::Request r = std::move(waiting_.front());
    waiting_.pop_front();
    return r;
  }
  const Interrupt& interrupt() const { return interrupt_; }

 private:
  void add(engine::Request&& r) {
    const MutexLock lock(mutex_);
    waiting_.push_back(std::move(r));
    changed_.notify_one();
  }
  void close(const Error& why) {
    if (why.kind() != ErrorKind::kStopped) LOG_ERROR("{}", why.what());
    const MutexLock lock(mutex_);
    closed_ = true;
    changed_.notify_one();
  }

  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<engine::Request> waiting_ CREMA_GUARDED_BY(mutex_);
  bool closed_ CREMA_GUARDED_BY(mutex_) = false;
  Interrupt interrupt_;
};

class NetServer {
 public:
  explicit NetServer(const Interrupt& interrupt) : interrupt_(interrupt) {}

  engine::Reply answer(const engine::Request& r) {
    engine::Reply reply;
    try {
      dispatch(r, &reply);
      if (reply.what_case() == engine::Reply::WHAT_NOT_SET) reply.mutable_done();
    } catch (...) {
      const Error e = asError(std::current_exception());
      reply.mutable_failed()->set_kind(name(e.kind()));
      reply.mutable_failed()->set_story(e.what());
    }
    return reply;
  }

 private:
  void dispatch(const engine::Request& r, engine::Reply* reply) {
    switch (r.what_case()) {
      case engine::Request::kHello:
        return;
      case engine::Request::kDecode:
        return decode(r.decode(), reply->mutable_image());
      case engine::Request::kResize:
        return resize(r.resize(), reply->mutable_image());
      case engine::Request::kTransform:
        return transform(r.transform(), reply->mutable_blobs()->add_blob());
      case engine::Request::kOpen:
        if (net_) invalid("this process has its net already; start another one");
        net_ = std::make_unique<ClientNet>(r.open(), interrupt_);
        return net_->describe(reply->mutable_opened());
      case engine::Request::WHAT_NOT_SET:
        invalid("the request says nothing that this version knows; are client and executable of the same version?");
      default:
        return netRequest(r, reply);
    }
  }

  void netRequest(const engine::Request& r, engine::Reply* reply) {
    if (!net_) invalid("no net is open in this process");
    switch (r.what_case()) {
      case engine::Request::kConnect:
        return net_->connect(r.connect());
      case engine::Request::kSync:
        return net_->sync();
      case engine::Request::kTrain:
        return net_->train(r.train());
      case engine::Request::kPredict:
        return net_->predict(r.predict(), reply->mutable_blobs());
      case engine::Request::kValidation:
        return net_->validate(r.validation(), reply->mutable_blobs());
      case engine::Request::kAggregate:
        return net_->aggregate(reply->mutable_blobs());
      case engine::Request::kSnapshot:
        return net_->snapshot(reply->mutable_snapshot());
      default:
        reply->set_weights(net_->weightsDigest());
    }
  }

  const Interrupt& interrupt_;
  std::unique_ptr<ClientNet> net_;
};

}  // namespace

int serveNet() {
  static Inbox& inbox = *new Inbox;  // never freed: its thread may outlive this call
  inbox.read();
  NetServer server(inbox.interrupt());
  while (const auto request = inbox.next()) toHost(server.answer(*request));
  exitBesideStdin();
}

}  // namespace crema::host
