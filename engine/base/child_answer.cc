#include "base/child_answer.h"

#include <new>

#include "base/error.h"

namespace crema {
namespace {
constexpr char kReturned = 'k', kNoMemory = 'm';
}

std::string answerOf(const std::function<std::string()>& body) noexcept {
  try {
    return kReturned + body();
  } catch (const std::bad_alloc&) {
    return {kNoMemory};
  } catch (...) {
    const Error e = asError(std::current_exception());
    return static_cast<char>('0' + static_cast<int>(e.kind())) + std::string(e.what());
  }
}

ChildResult resultOf(std::string answer, const ChildLimits& limits) {
  const char kind = answer.empty() ? kNoMemory : answer[0];
  if (kind == kNoMemory) return {"", fmt::format("asked for more than {} MiB of memory", limits.bytes >> 20)};
  answer.erase(0, 1);
  if (kind != kReturned) throw Error(static_cast<ErrorKind>(kind - '0'), answer);
  return {std::move(answer), ""};
}

}  // namespace crema
