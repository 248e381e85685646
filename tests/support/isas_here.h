// The instruction sets in which a test compares bits: all that this CPU has.
#pragma once
#include <iostream>
#include <vector>

#include "kernels/context.h"

namespace crema::kernels {

inline std::vector<const Isa*> isasHere() {
  std::vector<const Isa*> here;
  for (const Isa* isa : isas())
    if (runsHere(*isa))
      here.push_back(isa);
    else
      std::cout << "SKIPPED PART: this CPU has no " << name(*isa) << "\n";
  return here;
}

}  // namespace crema::kernels
