// What a misspelt word was most probably meant to be.
#pragma once
#include <string>
#include <vector>

namespace crema {

// The one of `known` with the least edit distance to `word`; "" when every one is further than a third of its letters.
std::string nearest(const std::string& word, const std::vector<std::string>& known);

}  // namespace crema
