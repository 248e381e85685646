// Arithmetic and Cast of known values, in the values' own type: integers are exact or refused; others are computed in
// double and rounded once, which equals one operation in FLOAT or FLOAT16.
#include <cmath>

#include "exchange/import_dims.h"
#include "exchange/import_values.h"

namespace crema::exchange {
namespace {

using Tensor = ::onnx::TensorProto;

double computed(const ImportNode& n, double a, double b) {
  const std::string& op = n.op();
  return op == "Add" ? a + b : op == "Sub" ? a - b : op == "Mul" ? a * b : a / b;
}

// Division truncates towards 0, as in C.
int64_t computed(const ImportNode& n, int64_t a, int64_t b) {
  const std::string& op = n.op();
  if (op == "Div" && b == 0) badData("{}: {} divided by 0", n.label(), a);
  int64_t made = 0;
  const bool over = op == "Add"   ? __builtin_add_overflow(a, b, &made)
                    : op == "Sub" ? __builtin_sub_overflow(a, b, &made)
                    : op == "Mul" ? __builtin_mul_overflow(a, b, &made)
                    : b == -1     ? __builtin_sub_overflow(0, a, &made)
                                  : (made = a / b, false);
  if (over) badData("{}: {} and {} give more than 64 bits", n.label(), a, b);
  return made;
}

template <class V>
std::vector<V> computed(const ImportNode& n, std::vector<V> a, const std::vector<V>& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] = computed(n, a[i], b[i]);
  return a;
}

void arithmetic(ImportNode& n) {
  const int type = n.tensor(0).data_type();
  if (n.tensor(1).data_type() != type) badData("{}: it computes with values of two types", n.label());
  const Dims dims = broadcastDims(n, dimsOf(n.tensor(0)), dimsOf(n.tensor(1)));
  const Tensor a = spread(n, n.tensor(0), dims), b = spread(n, n.tensor(1), dims);
  inside([&] { return "in " + n.label(); },
         [&] {
           n.constantResult(isInteger(type) ? tensorOf(dims, computed(n, intsOf(a), intsOf(b)), type)
                                            : tensorOf(dims, computed(n, doublesOf(a), doublesOf(b)), type));
         });
}

int64_t cut(const ImportNode& n, double v) {
  if (!(std::fabs(v) < 9.2e18)) badData("{}: {} becomes a whole number", n.label(), v);
  return static_cast<int64_t>(v);
}

void cast(ImportNode& n) {
  const auto to = static_cast<int>(n.i("to", 0));
  const Tensor& t = n.tensor(0);
  const Dims dims = dimsOf(t);
  if (to == Tensor::FLOAT || to == Tensor::DOUBLE || to == Tensor::FLOAT16)
    return n.constantResult(tensorOf(dims, doublesOf(t), to));
  if (!isInteger(to)) n.refuse("it makes {}, which is not read", typeName(to));
  std::vector<int64_t> all;
  if (isInteger(t))
    all = intsOf(t);
  else
    for (const double v : doublesOf(t)) all.push_back(to == Tensor::BOOL ? v != 0 : cut(n, v));
  inside([&] { return "in " + n.label(); }, [&] { n.constantResult(tensorOf(dims, all, to)); });
}

}  // namespace

void addImportNumbers(ImportConversions& all) {
  all.insert({{"Add", arithmetic}, {"Cast", cast}, {"Div", arithmetic}, {"Mul", arithmetic}, {"Sub", arithmetic}});
}

}  // namespace crema::exchange
