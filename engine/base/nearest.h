// What a misspelt word was most probably meant to be.
#pragma once
#include <string>
#include <vector>

namespace crema {

// The end of a message about `word`: "; did you mean X?", with `before` in front of X; "" when each of `known` is
// further from it than a third of its letters.
std::string didYouMean(const std::string& word, const std::vector<std::string>& known, const std::string& before = "");

}  // namespace crema
