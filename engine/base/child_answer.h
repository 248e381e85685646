// What a forked child sends back: one byte, then bytes. 'k': what its function returned; 'm': it had no more memory;
// '0' + an error's kind: the error's text.
#pragma once
#include <functional>
#include <string>

#include "base/child.h"

namespace crema {

// In the child. Nothing may leave it: the child would go on as a second parent.
std::string answerOf(const std::function<std::string()>& body) noexcept;
ChildResult resultOf(std::string answer, const ChildLimits& limits);  // in its parent; throws the child's Error

}  // namespace crema
