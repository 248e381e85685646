// A net's flat diff without the gradients that are left to the update, whose memory is neither written nor read: the ranges
// between them, one behind the other. Where nothing is left it is the flat diff itself.
#pragma once
#include <vector>

#include "net/training_plan.h"

namespace crema::train {

class PackedGradient {
 public:
  PackedGradient(net::Net& net, const std::vector<net::TrainingPlan::Deferrable>& left);
  int64_t count() const { return count_; }
  int64_t at(int64_t flat) const;  // the place of an element of the flat diff that is none of those left out
  float* values() { return packs() ? values_.data() : net_->flatDiff().mutableDiff<float>(); }
  void take(int64_t from, int64_t to);    // these places get what the flat diff has now
  const float* put(const float* packed);  // into the flat diff, which is returned; or `packed`, where nothing is left

 private:
  struct Range {
    int64_t flat, packed, size;
  };
  bool packs() const { return ranges_.size() > 1; }

  net::Net* net_;
  std::vector<Range> ranges_;  // in order
  int64_t count_ = 0;
  std::vector<float> values_;
};

}  // namespace crema::train
