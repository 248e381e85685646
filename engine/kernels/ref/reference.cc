// The tables of the reference loops.
#include "kernels/ref/ref.h"
#include "kernels/table.h"

namespace crema::kernels {
namespace {

// A reference loop as an entry of a table. The types must agree exactly, so that no argument is converted.
template <auto LOOPS>
struct Entry;
template <class... A, void (*LOOPS)(A...)>
struct Entry<LOOPS> {
  static void run(Context&, A... arguments) { LOOPS(arguments...); }
};

template <class T>
constexpr Table<T> referenceTable() {
#define CREMA_REFERENCE(NAME) .NAME = Entry<&ref::NAME<T>>::run,
  return {CREMA_KERNELS(CREMA_REFERENCE)};
#undef CREMA_REFERENCE
}

}  // namespace

const Table<float> kFloatReference = referenceTable<float>();
const Table<double> kDoubleReference = referenceTable<double>();

}  // namespace crema::kernels
