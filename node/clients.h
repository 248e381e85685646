// The clients of a node: feeding tasks, the program, and who shuts the node down. They have the run's token and come
// through the private socket, as this process's user, or, from executors without a node, through a port; others get no
// answer.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/door.h"
#include "base/mutex.h"
#include "node/broker.h"
#include "node/frames.h"
#include "node/held_port.h"
#include "node/kept.h"

namespace crema::node {

class Clients {
 public:
  struct Node {  // what requests are about; all of it outlives the clients
    Broker& broker;
    Kept& kept;
    HeldPort& port;
    std::function<void(const std::string& story)> programFailed;
    std::function<void(const std::string& value)> stateSet;
    std::function<void(const std::string& story)> programStuck;
  };
  // host: the address for the port; "": there is none.
  Clients(const Secret& secret, const std::string& host, Node node);
  const std::string& address() const { return name_; }  // in the abstract namespace, without the zero byte in front
  std::string port() const { return port_ ? port_->address() : ""; }  // "host:port"

 private:
  struct Client;
  void serve(Socket socket, bool local, const Interrupt& closing);
  int answer(const wire::NodeRequest& request, Descriptor beside, Client& client, wire::NodeAnswer* to);
  void answerOfQueue(const wire::NodeRequest& request, Client& client, wire::NodeAnswer* to);
  bool reserve(const wire::NodeRequest::Put& request, Client& client);
  bool putBlock(const wire::NodeRequest::Put& request, Descriptor beside, Client& client);
  void keep(const std::string& queue, const Item& item);
  double idle();  // seconds since the program did something
  void put(const wire::NodeRequest::Put& request, Descriptor beside, Client& client, wire::NodeAnswer* to);
  int get(const wire::NodeRequest::Get& request, Client& client, wire::NodeAnswer* to);

  const std::string name_;
  Node node_;
  Mutex keeping_;  // blocks that are kept are put one at a time: later epochs have the order of the first
  Door door_;      // the last members: their threads use the others
  std::unique_ptr<Door> port_;
};

}  // namespace crema::node
