// The text of the error that `body` ends with; "no error" when it ends well.
#pragma once
#include <functional>
#include <string>

#include "base/error.h"

namespace crema::test {

inline std::string messageOf(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace crema::test
