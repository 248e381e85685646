// What commands on a net prototxt have in common: which net, and for those that look at it without running it, its
// shapes.
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
caffe::NetState stateOf(const NetFlags& f, const caffe::NetParameter& net);  // the net's own, with the flags over it
// The net of the flags, in their phase and level, with the stages that it names itself and those of the flags. Where
// sources are not to be opened, crop_size stands for a database that is not there.
std::unique_ptr<net::Net> readFlaggedNet(const NetFlags& f, const net::NetOptions& options);

// Built without values: its memory is promised, not used. Shapes of Data layers come from their database.
class DescribedNet {
 public:
  explicit DescribedNet(const NetFlags& f);
  const net::Net& net() const { return *net_; }
  // The names of a layer's bottoms or tops, in order; a copy that was made for one of several readers goes by the name
  // of what it copies. Layers that make such copies are not shown: isCopy().
  std::vector<std::string> bottoms(int layer) const;
  std::vector<std::string> tops(int layer) const;
  bool isCopy(int layer) const;
  std::string typeOf(int layer) const;  // as written

 private:
  kernels::Context kernels_;
  std::unique_ptr<net::Net> net_;
  std::map<std::string, std::string> copies_;  // name of a copy -> of what it copies
};

std::string grouped(int64_t number);  // 1,234,567

}  // namespace crema::cli
