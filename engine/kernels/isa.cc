#include "kernels/isa.h"

#include "base/error.h"
#include "base/text.h"

namespace crema::kernels {

const std::vector<const Isa*>& isas() {
#define CREMA_ADDRESS(NAME) &k##NAME,
  static const std::vector<const Isa*> all = {CREMA_INSTRUCTION_SETS(CREMA_ADDRESS)};
#undef CREMA_ADDRESS
  return all;
}

std::string isaNames() {
  std::vector<std::string> names;
  for (const Isa* isa : isas()) names.emplace_back(isa->name);
  return alternatives(names);
}

const char* name(const Isa& isa) { return isa.name; }
bool runsHere(const Isa& isa) { return isa.runsHere(); }

const Isa& bestIsa() {
  for (auto isa = isas().rbegin(); isa != isas().rend(); ++isa)
    if (runsHere(**isa)) return **isa;
  invalid("this CPU has no AVX2 and FMA instructions; crema needs an x86-64 CPU of 2013 (Haswell, Zen) or later");
}

const Isa& chooseIsa(std::string_view wanted) {
  if (wanted.empty()) return bestIsa();
  for (const Isa* isa : isas()) {
    if (wanted != isa->name) continue;
    if (!runsHere(*isa)) invalid("-isa {}: this CPU does not have it; leave -isa out", wanted);
    return *isa;
  }
  invalid("-isa must be {}, not '{}'", isaNames(), wanted);
}

}  // namespace crema::kernels
