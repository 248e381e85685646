#include "worker/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace crema::worker {
namespace {

constexpr int kLongest = 5;  // a window is at most 2^5 times as long as the first

std::string listOf(const std::vector<int>& numbers) {
  std::string text;
  for (const int n : numbers) text += fmt::format("{}{}", text.empty() ? "" : ", ", n);
  return text;
}

Spent since(const Spent& first, const Spent& now) {
  return {now.passes - first.passes, now.passSeconds - first.passSeconds, now.steps - first.steps,
          now.waitedSeconds - first.waitedSeconds};
}

}  // namespace

void Balance::begin(const std::vector<int>& members, const std::vector<Spent>& spent) {
  members_ = members;
  atFirst_.clear();
  decided_ = false;
  for (size_t i = 0; i < members.size(); ++i)
    if (spent[i].steps == 0) speeds_.erase(members[i]);  // another process
  const Shares equal = equalShares(ranks_, static_cast<int>(members.size()));
  shares_ = speeds_.empty() ? equal : sharesFor(secondsPerRank(spent), ranks_);
  text_ = speeds_.empty() ? "" : fmt::format("ranks of worker(s) {}: {}{}", listOf(members), listOf(shares_), why_);
  why_.clear();
}

std::vector<double> Balance::secondsPerRank(const std::vector<Spent>& spent) const {
  std::vector<double> seconds;
  double sum = 0;
  int known = 0;
  for (size_t i = 0; i < members_.size(); ++i) {
    const auto speed = speeds_.find(members_[i]);
    const bool is = speed != speeds_.end() && spent[i].steps > 0;
    seconds.push_back(is ? speed->second : 0);
    sum += seconds.back(), known += is;
  }
  std::replace(seconds.begin(), seconds.end(), 0.0, known ? sum / known : 1.0);
  return seconds;
}

void Balance::openWindow(const std::vector<Spent>& spent, double now) {
  atFirst_ = spent;
  until_ = now + window_ * (1 << std::min(changes_, kLongest));
}

bool Balance::wantsOthers(const std::vector<Spent>& spent, double now) {
  const auto all = static_cast<int>(members_.size());
  if (window_ <= 0 || all < 2 || all == ranks_ || decided_) return false;
  if (atFirst_.empty()) openWindow(spent, now);
  if (now < until_) return false;
  std::vector<Spent> inWindow;
  for (size_t i = 0; i < spent.size(); ++i) inWindow.push_back(since(atFirst_[i], spent[i]));
  if (std::any_of(inWindow.begin(), inWindow.end(), [](const Spent& s) { return s.steps < kSteps; })) return false;
  const auto better = betterShares(shares_, inWindow);
  if (!better) {
    openWindow(spent, now);
    return false;
  }
  decided_ = true, ++changes_;
  speeds_.clear();
  for (size_t i = 0; i < members_.size(); ++i) speeds_[members_[i]] = better->secondsPerRank[i];
  why_ = reason(*better);
  return true;
}

std::string Balance::reason(const Better& better) const {
  const auto& s = better.secondsPerRank;
  const auto [least, most] = std::minmax_element(s.begin(), s.end());
  const auto at = [&](auto it) { return members_[static_cast<size_t>(it - s.begin())]; };
  return fmt::format(
      ", before {}, as worker {} takes {:.3g} s for a rank and worker {} {:.3g} s: a step should take {:.3g} s instead "
      "of "
      "{:.3g} s",
      listOf(shares_), at(most), *most, at(least), *least, better.after, better.before);
}

}  // namespace crema::worker
