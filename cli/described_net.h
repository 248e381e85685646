// What commands on a net prototxt share: flags that select the net, and a net built for its shapes alone.
#pragma once
#include <map>
#include <memory>

#include "cli/command.h"
#include "net/net.h"

namespace crema::cli {

struct NetFlags {
  std::string model, phase = "TEST", stage;
  int level = 0;
};

void addNetFlags(CLI::App& app, NetFlags& f, bool phase = true);
caffe::NetState stateOf(const NetFlags& f);  // invalid() for a phase that is neither TRAIN nor TEST
// The net's own state, overridden by the flags.
caffe::NetState stateOf(const NetFlags& f, const caffe::NetParameter& net);
// The net of the flags, in their phase and level, with the stages that it names itself and those of the flags. Where
// sources are not opened, crop_size gives the shape of a missing database.
std::unique_ptr<net::Net> readFlaggedNet(const NetFlags& f, const net::NetOptions& options);

// A net built for its shapes: memory is reserved and never touched. Shapes of Data layers come from their databases.
class DescribedNet {
 public:
  explicit DescribedNet(const NetFlags& f);
  const net::Net& net() const { return *net_; }
  net::Net& net() { return *net_; }
  // The names of a layer's bottoms or tops, in order; a split's copy has the name of the blob that it copies. Split
  // layers themselves are not shown: isCopy().
  std::vector<std::string> bottoms(int layer) const;
  std::vector<std::string> tops(int layer) const;
  bool isCopy(int layer) const;
  std::string typeOf(int layer) const;  // as the prototxt has it

 private:
  kernels::Context kernels_;
  std::unique_ptr<net::Net> net_;
  std::map<std::string, std::string> copies_;  // name of a split's copy -> the copied blob
};

std::string grouped(int64_t number);  // 1,234,567

}  // namespace crema::cli
